package podowner

import (
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOf(t *testing.T) {
	for want, made := range map[string]meta.OwnerReference{
		"Deployment cart":  {Kind: "ReplicaSet", Name: "cart-abc"},
		"ReplicaSet cart":  {Kind: "ReplicaSet", Name: "cart"},
		"StatefulSet db":   {Kind: "StatefulSet", Name: "db"},
		"CronJob nightly":  {Kind: "Job", Name: "nightly-29417280"},
		"Job load-2":       {Kind: "Job", Name: "load-2"},
		"ReplicaSet r-abd": {Kind: "ReplicaSet", Name: "r-abd"},
	} {
		made.Controller = new(true)
		pod := &core.Pod{ObjectMeta: meta.ObjectMeta{Labels: map[string]string{"pod-template-hash": "abc"},
			OwnerReferences: []meta.OwnerReference{{Kind: "Node", Name: "n1"}, made}}}
		if kind, name := Of(pod); kind+" "+name != want {
			t.Errorf("%s %s, want %s", kind, name, want)
		}
	}
	if kind, name := Of(&core.Pod{}); kind+name != "" {
		t.Errorf("nothing makes it: %s %s", kind, name)
	}
}
