/** Runs everything. */
export default function () {
  return 1;
}
export { add as plus } from './module.js';
