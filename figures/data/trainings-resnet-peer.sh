# the same ResNet-20 by the newest PyTorch (make deps-peers), on the same photographs: test images named correctly (%), after each epoch (15 minutes on 2 cores)
echo epoch,accuracy
"${PEER:-.peers/bin/python}" "${GENERATED:-generated}/examples/resnet_peer.py" "${TREADLE_DATA:-../shared/data}/cifar10-subset" 20 | sed 's/epoch //; s/: accuracy /,/'
