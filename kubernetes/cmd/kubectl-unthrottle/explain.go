package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/cure/agent/answers"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/see/flightrecorder"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/sim/parallel"
	explainview "github.com/unthrottle/unthrottle/internal/ui/report/explain"
	forecastview "github.com/unthrottle/unthrottle/internal/ui/report/forecast"
	"github.com/unthrottle/unthrottle/internal/ui/report/rows"
)

// ofARecording is why a forecast made here does not know the node.
const ofARecording = "a recording does not say what its node can do now; 'kubectl unthrottle fix' leaves that to the agent there"

// newest is the recording of a pod that is asked for, in a file of dir.
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
	var all answers.Recordings
	if err := a.ask(ctx, "/recordings", &all); err != nil {
		return "", err
	}
	var best *answers.Recording
	for i := range all.Recordings {
		r := &all.Recordings[i]
		if a.isOf(pod, r.Namespace, r.Pod, r.Container) && (best == nil || r.At.Sub(moment).Abs() < best.At.Sub(moment).Abs()) {
			best = r
		}
	}
	if best == nil || at != "" && best.At.Sub(moment).Abs() > flightrecorder.Near {
		return "", fmt.Errorf("no recording of pod %s/%s that you may see: the agent on node %s records a container by itself when it is stopped for more than a tenth of the time; "+
			"recordings need 'create pods/exec' in namespace %s. 'kubectl unthrottle top' shows whether it is stopped", pod.Namespace, pod.Name, a.node, pod.Namespace)
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

// forecastOf forecasts from a recording's file and chooses, as `unthrottle forecast FILE` does.
func forecastOf(ctx context.Context, file string) (*forecast.Forecast, policy.Choice, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, policy.Choice{}, err
	}
	defer in.Close()
	load, err := forecast.Read(in)
	if err != nil {
		return nil, policy.Choice{}, err
	}
	made, err := policy.Forecast(load, nil, false, parallel.OnAllCores(ctx))
	if err != nil {
		return nil, policy.Choice{}, err
	}
	return made, policy.Choose(made, policy.Terms{Unseen: ofARecording}), nil
}

func addAt(cmd *cobra.Command, at *string) *cobra.Command {
	cmd.Flags().StringVar(at, "at", "", "the recording nearest to a `MOMENT`: 03:12, \"2026-03-04 03:12\", 20m ago as 20m (default: the newest)")
	return cmd
}

func (p *plugin) newExplain() *cobra.Command {
	var at string
	return addAt(p.addPod(&cobra.Command{
		Use:   "explain POD",
		Short: "Say why a pod was stopped, and who spent the quota, from the agent's recording",
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withRecording(cmd.Context(), args[0], at, func(file string) error {
				e, err := live.File(file)
				if err != nil {
					return err
				}
				o := explainview.Options{Style: p.style()}
				var shown *rows.Recommended
				made, choice, err := forecastOf(cmd.Context(), file)
				if err != nil {
					o.NotForecast = err.Error()
				} else {
					o.Recommended, o.Forecast, shown = &choice, made, rows.NewRecommended(made, &choice)
					if choice.Answer != policy.AnswerLeave || !choice.Certain {
						o.NotHere = rows.NotHere(made, &choice)
					}
					explainview.Check(e.Pools, made)
				}
				if p.output == "json" {
					return explainview.JSON(p.Out, e, shown)
				}
				return explainview.Write(p.Out, e, o)
			})
		},
	}), &at)
}

func (p *plugin) newForecast() *cobra.Command {
	var at string
	var pools bool
	cmd := addAt(p.addPod(&cobra.Command{
		Use:   "forecast POD",
		Short: "Say what each remedy would do to a pod, before it is applied",
		RunE:  func(cmd *cobra.Command, args []string) error { return p.forecast(cmd.Context(), args[0], at, pools) },
	}), &at)
	cmd.Flags().BoolVar(&pools, "pools", false, "also show delay and response of each thread pool")
	return cmd
}

func (p *plugin) forecast(ctx context.Context, name, at string, pools bool) error {
	return p.withRecording(ctx, name, at, func(file string) error {
		made, choice, err := forecastOf(ctx, file)
		if err != nil {
			return err
		}
		if p.output == "json" {
			return forecastview.JSON(p.Out, made, &choice)
		}
		return forecastview.Write(p.Out, made, &choice, forecastview.Options{Pools: pools}, p.style())
	})
}
