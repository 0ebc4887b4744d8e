#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
echo "hello, $(cat "$1"); I run in $PWD"
