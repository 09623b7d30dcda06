var x = 1;
if (x == "😀") { var y = 2; }
