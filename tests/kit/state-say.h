/* SPDX-License-Identifier: Apache-2.0 */
/* The last thing that was said. */
#pragma once

extern char said[1024];
