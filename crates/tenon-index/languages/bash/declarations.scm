(function_definition name: (word) @name body: (_) @body) @declaration.function

(program (variable_assignment name: (variable_name) @name) @declaration.variable)
(program (declaration_command (variable_assignment name: (variable_name) @name) @declaration.variable))
