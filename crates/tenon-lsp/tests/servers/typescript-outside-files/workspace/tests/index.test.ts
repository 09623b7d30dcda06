import { rounded } from "../src";
import "./price.test";

rounded(2.5);
