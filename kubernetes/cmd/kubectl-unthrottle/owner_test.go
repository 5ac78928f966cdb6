package main

import (
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
)

// TestOwners: who makes a pod, and which name fits all of its pods.
func TestOwners(t *testing.T) {
	indexed := podOf("load-3-abcde", "Job", "load", map[string]string{"batch.kubernetes.io/job-completion-index": "3"})
	long := strings.Repeat("x", 58)
	for want, pod := range map[string]*core.Pod{
		"deployment/cart cart-*-?????":    replica("cart", "7d9c5b8f6", "x2x4x"),
		"replicaset/old old-?????":        podOf("old-x2x4x", "ReplicaSet", "old", nil),
		"statefulset/db db-[0-9]*":        podOf("db-0", "StatefulSet", "db", nil),
		"daemonset/logs logs-?????":       podOf("logs-x2x4x", "DaemonSet", "logs", nil),
		"job/load load-?????":             podOf("load-x2x4x", "Job", "load", nil),
		"job/load load-*-?????":           indexed,
		"cronjob/nightly nightly-*-?????": podOf("nightly-29417280-x2x4x", "Job", "nightly-29417280", nil),
		"pod/alone alone":                 podOf("alone", "", "", nil),
		"rollout/web web-1":               podOf("web-1", "Rollout", "web", nil),
		"deployment/" + long + "-y " + long[:50] + "-cut-x2x4x": podOf(long[:50]+"-cut-x2x4x", "ReplicaSet",
			long+"-y-abc", map[string]string{"pod-template-hash": "abc"}),
	} {
		of := ownerOf(pod)
		pattern := of.pattern(pod)
		if got := of.String() + " " + pattern; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if !fits(pattern, pod) || !fits(match(of, pod, "app"), pod) {
			t.Errorf("%s does not fit its own pod %s", pattern, pod.Name)
		}
		if fits(match(of, pod, "other"), pod) {
			t.Errorf("%s fits a container that is not there", match(of, pod, "other"))
		}
	}
	pods := []core.Pod{*replica("cart", "7d9c5b8f6", "x2x4x"), *replica("cart-api", "5c7d9f6b4", "abcde"),
		*podOf("db-0", "StatefulSet", "db", nil)}
	if got := others(owner{"Deployment", "cart"}, "cart-*-?????", pods); len(got) != 1 ||
		got[0] != "deployment/cart-api (pod cart-api-5c7d9f6b4-abcde)" {
		t.Errorf("%q", got)
	}
}
