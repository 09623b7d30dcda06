export function pick(a: number): number;
export function pick(a: string): string;
export function pick(a: any): any {
  return a;
}
export class Base {
  limit = 1;
  constructor(readonly size: number) {}
  @dec()
  filter(x: number) {
    return x;
  }
  async later() {
    return this.filter(1);
  }
}
export default async function main() {}
export const count = 1;
export interface Shape { side: number }
export namespace Shape { export const one = 1; }
function dec(): any { return null; }
