<html>
<body>
<?php function render($items) { ?>
  <ul><?php foreach ($items as $item): ?><li><?= $item ?></li><?php endforeach; ?></ul>
<?php } ?>
</body>
</html>
