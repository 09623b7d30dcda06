import { twice } from "./twice.js";

var unused = twice("😀");
