#!/usr/bin/env node
// Starts the program of the package for this system. On Linux and macOS this process becomes the program where Node can
// do that (22.15 or later), so that signals, exit codes and memory are the program's own.
'use strict';

const { spawn } = require('node:child_process');
const { name } = require('../package.json');

const system = `${process.platform}-${process.arch}`;
const file = process.platform === 'win32' ? 'tenon.exe' : 'tenon';

function fail(message, hint) {
  process.stderr.write(`error: ${message}\n  hint: ${hint}\n`);
  process.exit(1);
}

function program() {
  try {
    return require.resolve(`${name}-${system}/bin/${file}`);
  } catch {
    return fail(
      `the package \`${name}-${system}\` is not installed`,
      'reinstall without `--omit=optional`; if there is no such package, Tenon has no binary for this system',
    );
  }
}

const path = program();
const args = process.argv.slice(2);
if (process.platform !== 'win32' && typeof process.execve === 'function') {
  try {
    process.execve(path, [path, ...args], process.env);
  } catch (error) {
    fail(`cannot start \`${path}\`: ${error.message}`, 'reinstall the package');
  }
}

const child = spawn(path, args, { stdio: 'inherit' });
for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM']) {
  process.on(signal, () => child.kill(signal));
}
child.on('error', (error) => fail(`cannot start \`${path}\`: ${error.message}`, 'reinstall the package'));
child.on('exit', (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
