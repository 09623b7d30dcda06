const { isArray, keys: getKeys, missing = 1, ...others } = Object;
export const [first, second] = pair;

class Subject {
  constructor(public destination?: Observer, private readonly limit = 1, plain?: number) {
    this.destination = destination;
  }
}
