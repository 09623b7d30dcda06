export function first(items: number[]) {
  debugger;
  return items[0] == 1;
}
