package container

import (
	"testing"

	"github.com/unthrottle/unthrottle/internal/container/names"
)

// What a runtime says of a pod is taken over as a whole, and only of a pod.
func TestTakeOfAPod(t *testing.T) {
	said := names.Names{Namespace: "shop", Pod: "cart-7d9c5b8f6-x2x4x", PodContainer: "app", TemplateHash: "7d9c5b8f6", CRI: true}
	c := Container{PodUID: "u"}
	c.take(said)
	if c.Namespace != "shop" || c.Pod != said.Pod || c.ContainerName != "app" || c.TemplateHash != "7d9c5b8f6" {
		t.Errorf("%+v", c)
	}
	c, said.CRI = Container{}, false
	c.take(said)
	if c.Pod != "" || c.TemplateHash != "" {
		t.Errorf("a user's label is believed: %+v", c)
	}
}
