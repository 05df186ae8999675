<?php
$fibers = [];
for ($number = 0; $number < 30; $number++) {
    $fibers[] = new Fiber(function () use ($number) {
        for ($step = 0; $step < 200; $step++) {
            Fiber::suspend(str_repeat("text $step", $number + 500));
        }
    });
}
foreach ($fibers as $fiber) $fiber->start();
for ($step = 0; $step < 200; $step++)
    foreach ($fibers as $fiber) if (!$fiber->isTerminated()) $fiber->resume();
