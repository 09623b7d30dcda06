import { Observable } from 'rxjs';

/** Overloaded. */
export function map<T, R>(project: (value: T) => R): R;
export function map<T, R>(project: (value: T) => R, thisArg: unknown): R;
export function map<T, R>(project: (value: T) => R, thisArg?: unknown): R {
  return project.call(thisArg);
}

export interface Observer<T> extends Partial<Base>, ns.Closable {
  /** Receives values. */
  next: (value: T) => void;
  complete?(): void;
  readonly closed: boolean;
  [key: string]: unknown;
  new (x: number): Observer<T>;
}

export type Handler<T = unknown> = (value: T) => void;

export enum Level {
  Low,
  High = 2,
  'quoted' = 3,
}

export const enum Flags { A = 1 << 0 }

@Injectable()
@Component({ selector: 'app' })
export class Service<T extends object> extends Base<T> implements OnInit, ns.OnDestroy {
  @Input() name = '';
  private readonly items: Map<string, T> = new Map();
  static instance?: Service<object>;
  handler = (event: Event): void => {};
  declare ambient: string;

  constructor(private readonly http: Http, public name2: string, plain: number) {
    super();
  }

  get(key: string): T;
  get(key: number): T;
  get(key: unknown): T {
    return this.items.get(String(key))!;
  }

  @HostListener('click', ['$event'])
  async onClick<E extends Event>(
    event: E, // the event
    ...rest: unknown[]
  ): Promise<void> {}

  get size(): number { return 1; }
  set size(value: number) {}
}

export abstract class Shape {
  abstract area(): number;
  protected abstract readonly kind: string;
  describe() { return this.kind; }
}

export namespace Outer.Inner {
  export const VALUE = 1;
  export function run() {}
  namespace Deep { class Hidden {} }
}

declare module 'untyped' {
  export function load(): void;
}

declare global {
  interface Window { custom: string }
}

declare const VERSION: string;
declare function ambientFunction(a: string): void;

export const arrow = <T,>(x: T): T => x;
export const config = {
  timeout: 10,
  onError(error: Error) {},
  retry: (n: number) => n,
} satisfies Config;
export default arrow;
