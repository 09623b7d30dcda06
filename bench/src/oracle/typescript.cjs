// Prints all errors of a TypeScript project, one JSON line per line of input. Unlike `tsc`, it reports the types of files
// beside syntax errors, too. Arguments: the folder of the `typescript` package, the `tsconfig.json`.
const readline = require('node:readline');
const path = require('node:path');
const ts = require(process.argv[1]);

const config = process.argv[2];
const host = {
  ...ts.sys,
  onUnRecoverableConfigFileDiagnostic: (one) => {
    throw new Error(ts.flattenDiagnosticMessageText(one.messageText, '\n'));
  },
};
let program;

function errors() {
  const parsed = ts.getParsedCommandLineOfConfigFile(config, { noEmit: true }, host);
  const files = ts.createCompilerHost(parsed.options);
  const read = files.getSourceFile;
  const known = new Map(program?.getSourceFiles().map((file) => [file.fileName, file]));
  files.getSourceFile = (name, ...rest) => {
    const old = known.get(name);
    return old && ts.sys.readFile(name) === old.text ? old : read(name, ...rest);
  };
  program = ts.createProgram({ rootNames: parsed.fileNames, options: parsed.options, host: files, oldProgram: program });
  const found = program
    .getSourceFiles()
    .flatMap((file) => [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)]);
  return [...parsed.errors, ...program.getOptionsDiagnostics(), ...program.getGlobalDiagnostics(), ...found]
    .filter((one) => one.category === ts.DiagnosticCategory.Error)
    .map((one) => ({
      file: one.file ? path.relative(path.dirname(config), one.file.fileName) : '',
      code: String(one.code),
      message: ts.flattenDiagnosticMessageText(one.messageText, '\n'),
    }));
}

readline.createInterface({ input: process.stdin }).on('line', () => console.log(JSON.stringify(errors())));
