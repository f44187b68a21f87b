func.func @add(%x: memref<3x32xf32>, %y: memref<3x1xf32>)
    -> memref<3x32xf32> {
  %zero = arith.constant 0 : index
  %sum = memref.alloc() : memref<3x32xf32>
  affine.for %i = 0 to 3 {
    affine.for %j = 0 to 32 {
      %0 = affine.load %x[%i, %j] : memref<3x32xf32>
      %1 = affine.load %y[%i, %zero] : memref<3x1xf32>
      %2 = arith.addf %0, %1 : f32
      affine.store %2, %sum[%i, %j] : memref<3x32xf32>
    }
  }
  return %sum : memref<3x32xf32>
}
