export * from "./price";
