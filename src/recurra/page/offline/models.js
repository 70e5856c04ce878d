// Models by the kind that an exported page names.

import { language } from "./language.js";
import { classification, tagging } from "./reading.js";
import { writing } from "./writing.js";

export const models = { writing, language, tagging, classification };
