package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/agent/answers"
	"github.com/unthrottle/unthrottle/internal/see/flightrecorder"
)

// recordingOf fetches the recording of a pod that is asked for into a file of dir.
func (p *plugin) recordingOf(ctx context.Context, name, at, dir string) (string, error) {
	moment := time.Now()
	if at != "" {
		var err error
		if moment, err = flightrecorder.Moment(at, moment); err != nil {
			return "", fmt.Errorf("--at %w", err)
		}
	}
	c, err := p.connect()
	if err != nil {
		return "", err
	}
	pod, err := c.pod(ctx, name)
	if err != nil {
		return "", err
	}
	a, err := c.agentAt(ctx, pod)
	if err != nil {
		return "", err
	}
	defer a.done()
	var recordings answers.Recordings
	if err := a.ask(ctx, "/recordings", &recordings); err != nil {
		return "", err
	}
	var best, earlier *answers.Recording
	for i := range recordings.Recordings {
		r := &recordings.Recordings[i]
		if !a.isOf(pod, r.Namespace, r.Pod, r.Container) {
			continue
		}
		if at == "" && r.At.Before(pod.CreationTimestamp.Time) { // a StatefulSet's pod has the name of the one before it
			earlier = r
		} else if best == nil || r.At.Sub(moment).Abs() < best.At.Sub(moment).Abs() {
			best = r
		}
	}
	if best == nil && earlier != nil {
		return "", fmt.Errorf("no recording of pod %s/%s since it was made; --at '%s' shows one of an earlier pod of this name",
			pod.Namespace, pod.Name, earlier.At.Local().Format("2006-01-02 15:04"))
	}
	if best == nil || at != "" && best.At.Sub(moment).Abs() > flightrecorder.Near {
		return "", fmt.Errorf("no recording of pod %s/%s that you may see: the agent on node %s records a container "+
			"by itself when it is stopped for more than a tenth of the time; "+
			"recordings need 'create pods/exec' in namespace %s. 'kubectl unthrottle top' shows whether it is stopped",
			pod.Namespace, pod.Name, a.node, pod.Namespace)
	}
	fmt.Fprintf(p.ErrOut, "the recording of %s on node %s\n", best.At.Local().Format("2006-01-02 15:04:05 MST"), a.node)
	return a.fetch(ctx, best.File, dir)
}

// withRecording fetches the recording, and removes it afterwards.
func (p *plugin) withRecording(ctx context.Context, name, at string, do func(file string) error) error {
	dir, err := os.MkdirTemp("", "kubectl-unthrottle-")
	if err != nil {
		return fmt.Errorf("no room for the recording: %w", err)
	}
	defer os.RemoveAll(dir)
	file, err := p.recordingOf(ctx, name, at, dir)
	if err != nil {
		return err
	}
	return do(file)
}

func addAt(cmd *cobra.Command, at *string) *cobra.Command {
	cmd.Flags().StringVar(at, "at", "", "the recording nearest to a `MOMENT`: 03:12, \"2026-03-04 03:12\", 20m ago "+
		"as 20m (default: the newest)")
	return cmd
}
