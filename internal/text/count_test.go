package text

import "testing"

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		Count(0, "CPU"): "0 CPUs", Count(1, "CPU"): "1 CPU", Count(-1, "CPU"): "-1 CPUs", Count(12, "whole core"): "12 whole cores",
		CountOf(1, "process", "processes"): "1 process", CountOf(2, "process", "processes"): "2 processes",
		CPUs(1): "1 CPU", CPUs(0.5): "0.5 CPUs", CPUsAre("1"): "CPU 1 is", CPUsAre("1-3"): "CPUs 1-3 are",
		CPUsAre("0,2"): "CPUs 0,2 are", CPUs(2): "2 CPUs", CPUs(1.00001): "1 CPU", CPUs(0): "0 CPUs", CPUs(1.3333333): "1.333 CPUs",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
