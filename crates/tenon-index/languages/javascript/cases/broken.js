function whole() { return 1; }
class Open {
  method() { return (1; }
  other() {}
function later() {}
