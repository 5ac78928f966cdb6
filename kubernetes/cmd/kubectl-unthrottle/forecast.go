package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/sim/parallel"
	forecastview "github.com/unthrottle/unthrottle/internal/ui/report/forecast"
)

// ofARecording is why a forecast made here does not know the node.
const ofARecording = "a recording does not say what its node can do now; 'kubectl unthrottle fix' leaves that to the agent there"

// forecastOf forecasts from a recording's file and chooses, as `unthrottle forecast FILE` does.
func forecastOf(ctx context.Context, file string) (*forecast.Forecast, policy.Choice, error) {
	in, err := infile.Open(ctx, file)
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
