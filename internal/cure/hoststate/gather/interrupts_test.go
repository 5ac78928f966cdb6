package gather

import (
	"testing"
	"testing/fstest"
)

func TestIRQBalanceIsNoticed(t *testing.T) {
	root := fstest.MapFS{"proc/1/comm": {Data: []byte("init\n")}, "proc/irq/7/x": {}}
	if running(root, "irqbalance") {
		t.Error("noticed where it is not")
	}
	root["proc/30/comm"] = &fstest.MapFile{Data: []byte("irqbalance\n")}
	if !running(root, "irqbalance") {
		t.Error("not noticed")
	}
}
