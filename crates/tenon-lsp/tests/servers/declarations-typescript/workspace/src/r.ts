export { pick, Base as Basis } from "./m";
