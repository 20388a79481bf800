;; y[r][o] = x[r] · w[o], the dot products of all rows of x with all rows of w. A dense layer is one
;; of these, and so are attention scores, and attention weights times the values.
;;
;; All three matrices lie in one memory as float32. x, w, y are the addresses of their first rows,
;; and x_step, w_step, y_step the bytes from a row to the next one. There are `rows` rows in x,
;; `outputs` rows in w, and `columns` numbers in a row of either: multiples of 4, 2 and 4.
;;
;; A v128 holds four numbers, so one instruction multiplies four pairs. Four rows of x meet two of w
;; at a time: six loads then feed eight products, where a single pair of rows would need two for one.
(module
  (import "course" "memory" (memory 1))

  ;; The sum of the four numbers.
  (func $sum (param $v v128) (result f32)
    (f32.add
      (f32.add (f32x4.extract_lane 0 (local.get $v)) (f32x4.extract_lane 1 (local.get $v)))
      (f32.add (f32x4.extract_lane 2 (local.get $v)) (f32x4.extract_lane 3 (local.get $v)))))

  (func (export "product")
    (param $x i32) (param $w i32) (param $y i32)
    (param $rows i32) (param $outputs i32) (param $columns i32)
    (param $x_step i32) (param $w_step i32) (param $y_step i32)
    (local $x_row i32) (local $y_row i32) (local $r i32) (local $end i32)
    (local $x0 i32) (local $x1 i32) (local $x2 i32) (local $x3 i32) (local $w0 i32) (local $w1 i32)
    (local $a v128) (local $b v128)
    (local $s00 v128) (local $s10 v128) (local $s20 v128) (local $s30 v128)
    (local $s01 v128) (local $s11 v128) (local $s21 v128) (local $s31 v128)
    (loop $each_two_outputs
      (local.set $x_row (local.get $x))
      (local.set $y_row (local.get $y))
      (local.set $r (local.get $rows))
      (loop $each_four_rows
        (local.set $x0 (local.get $x_row))
        (local.set $x1 (i32.add (local.get $x0) (local.get $x_step)))
        (local.set $x2 (i32.add (local.get $x1) (local.get $x_step)))
        (local.set $x3 (i32.add (local.get $x2) (local.get $x_step)))
        (local.set $x_row (i32.add (local.get $x3) (local.get $x_step)))
        (local.set $w0 (local.get $w))
        (local.set $w1 (i32.add (local.get $w0) (local.get $w_step)))
        (local.set $end (i32.add (local.get $w0) (i32.shl (local.get $columns) (i32.const 2))))
        (local.set $s00 (v128.const i32x4 0 0 0 0)) (local.set $s01 (v128.const i32x4 0 0 0 0))
        (local.set $s10 (v128.const i32x4 0 0 0 0)) (local.set $s11 (v128.const i32x4 0 0 0 0))
        (local.set $s20 (v128.const i32x4 0 0 0 0)) (local.set $s21 (v128.const i32x4 0 0 0 0))
        (local.set $s30 (v128.const i32x4 0 0 0 0)) (local.set $s31 (v128.const i32x4 0 0 0 0))
        (loop $each_four_columns
          (local.set $a (v128.load (local.get $w0)))
          (local.set $b (v128.load (local.get $w1)))
          (local.set $s00 (f32x4.add (local.get $s00) (f32x4.mul (v128.load (local.get $x0)) (local.get $a))))
          (local.set $s01 (f32x4.add (local.get $s01) (f32x4.mul (v128.load (local.get $x0)) (local.get $b))))
          (local.set $s10 (f32x4.add (local.get $s10) (f32x4.mul (v128.load (local.get $x1)) (local.get $a))))
          (local.set $s11 (f32x4.add (local.get $s11) (f32x4.mul (v128.load (local.get $x1)) (local.get $b))))
          (local.set $s20 (f32x4.add (local.get $s20) (f32x4.mul (v128.load (local.get $x2)) (local.get $a))))
          (local.set $s21 (f32x4.add (local.get $s21) (f32x4.mul (v128.load (local.get $x2)) (local.get $b))))
          (local.set $s30 (f32x4.add (local.get $s30) (f32x4.mul (v128.load (local.get $x3)) (local.get $a))))
          (local.set $s31 (f32x4.add (local.get $s31) (f32x4.mul (v128.load (local.get $x3)) (local.get $b))))
          (local.set $x0 (i32.add (local.get $x0) (i32.const 16)))
          (local.set $x1 (i32.add (local.get $x1) (i32.const 16)))
          (local.set $x2 (i32.add (local.get $x2) (i32.const 16)))
          (local.set $x3 (i32.add (local.get $x3) (i32.const 16)))
          (local.set $w1 (i32.add (local.get $w1) (i32.const 16)))
          (local.set $w0 (i32.add (local.get $w0) (i32.const 16)))
          (br_if $each_four_columns (i32.lt_u (local.get $w0) (local.get $end))))
        (f32.store (local.get $y_row) (call $sum (local.get $s00)))
        (f32.store offset=4 (local.get $y_row) (call $sum (local.get $s01)))
        (local.set $y_row (i32.add (local.get $y_row) (local.get $y_step)))
        (f32.store (local.get $y_row) (call $sum (local.get $s10)))
        (f32.store offset=4 (local.get $y_row) (call $sum (local.get $s11)))
        (local.set $y_row (i32.add (local.get $y_row) (local.get $y_step)))
        (f32.store (local.get $y_row) (call $sum (local.get $s20)))
        (f32.store offset=4 (local.get $y_row) (call $sum (local.get $s21)))
        (local.set $y_row (i32.add (local.get $y_row) (local.get $y_step)))
        (f32.store (local.get $y_row) (call $sum (local.get $s30)))
        (f32.store offset=4 (local.get $y_row) (call $sum (local.get $s31)))
        (local.set $y_row (i32.add (local.get $y_row) (local.get $y_step)))
        (br_if $each_four_rows (local.tee $r (i32.sub (local.get $r) (i32.const 4)))))
      (local.set $w (i32.add (local.get $w) (i32.shl (local.get $w_step) (i32.const 1))))
      (local.set $y (i32.add (local.get $y) (i32.const 8)))
      (br_if $each_two_outputs (local.tee $outputs (i32.sub (local.get $outputs) (i32.const 2)))))))
