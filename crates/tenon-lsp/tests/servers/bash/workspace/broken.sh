#!/usr/bin/env bash
if true; then
  echo "never closed"
