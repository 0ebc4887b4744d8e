/* SPDX-License-Identifier: Apache-2.0 */
/* JSON in a test as it is in a file, without a backslash before each quotation mark. */
#pragma once

/* The text of the object or list between the parentheses, a string literal; a conversion such as %s in a
 * string of it stays one. What is no string has blanks wherever the formatter puts some, and no line breaks:
 * where these matter, where columns are counted, and for comments in JSON, a C string or a file is needed. */
#define JSON(...) #__VA_ARGS__
