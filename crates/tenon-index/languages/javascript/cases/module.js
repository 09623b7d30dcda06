'use strict';
import fs from 'fs';

/**
 * Adds two numbers.
 * @param {number} a
 */
function add(a, b = 2) {
  const local = () => 1;
  function inner() {}
  return a + b;
}

async function* generate() { yield 1; }

const LIMIT = 10, other = 20;
let counter = 0;
var legacy;

// An arrow function.
export const handler = async (event) => {
  return event;
};

export const api = {
  version: 1,
  get(path) { return path; },
  post: async (path) => path,
  'quoted-name': function () {},
};

export default class extends Base {
  #secret = 1;
  static count = 0;
  bound = () => this.#secret;
  constructor(a) {
    super();
    this.a = a;
    this.list = [];
  }
  get size() { return 1; }
  set size(value) {}
  static async create() {}
  *iterate() {}
  [Symbol.iterator]() {}
  #hidden() {}
}

class Widget extends React.Component {}
const Expression = class Named extends mixin(Base) { run() {} };

Widget.prototype.render = function render() {};
module.exports.helper = (x) => x;

module.exports = {
  start() {},
  stop: function () {},
};

const { a, b } = fs;
for (const x of []) { const y = x; }

describe('widget', () => {
  const setup = () => {};
  const value = 1;
  it('works', () => {});
});
