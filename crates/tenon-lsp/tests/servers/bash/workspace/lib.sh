#!/usr/bin/env bash
# Greets someone.
greet() {
  local name="$1"
  echo "hello $name 😀"
}
