package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/fleet/objectstore"
	"github.com/unthrottle/unthrottle/internal/text"
)

// leastEvery and mostEvery bound --every: an object is written anew with each slot of its hour, and keys' lifetimes are
// hours.
const leastEvery, mostEvery = time.Second, 24 * time.Hour

func newPush() *cobra.Command {
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "push DIR s3://BUCKET/PREFIX",
		Short: "Bring a host's rows into a store, where 'report' reads them",
		Long: `Bring the files that 'unthrottle export' or an agent keeps below DIR into a store with
Amazon's S3 protocol: those that are not there, or have changed. Nothing is removed,
neither here nor there. With --every it goes on until it is interrupted, and then
pushes once more; what fails is told, and tried again the next time.

Endpoint and credentials are those of the AWS command line (AWS_ENDPOINT_URL,
AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE).
They need s3:PutObject.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return errors.New("push: give a folder and a place in a store: 'unthrottle fleet push DIR s3://BUCKET/PREFIX'")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("every") && (every < leastEvery || every > mostEvery) {
				return fmt.Errorf("--every %s: give %s to %s", every, text.Duration(leastEvery), text.Duration(mostEvery))
			}
			place, err := objectstore.Parse(args[1])
			if err != nil {
				return err
			}
			if info, err := os.Stat(args[0]); err != nil || !info.IsDir() {
				return fmt.Errorf("%s: no such folder: give the one that 'export --dir' names", text.Sanitize(args[0], 0))
			}
			store, err := objectstore.Open(place, os.Getenv)
			if err != nil {
				return err
			}
			p := objectstore.Push{Store: store, Dir: args[0]}
			if every > 0 {
				return pushOn(cmd.Context(), &p, every, place)
			}
			done, err := p.Do(cmd.Context())
			if err != nil {
				return err
			}
			return pushed(done, place)
		},
	}
	cmd.Flags().DurationVar(&every, "every", 0, "go on, and push so often: `5m` is that of rows")
	return cmd
}

// pushed tells what one call did. The error is for files that did not go.
func pushed(done objectstore.Pushed, place objectstore.Place) error {
	for _, f := range done.Failed {
		say("%s: %s", text.Sanitize(f.Name, 0), text.Sanitize(f.Why, 0))
	}
	say("%s: %d of %s new or changed, %d KiB", text.Sanitize(place.String(), 0), done.Sent, text.Count(done.Files, "file"),
		(done.Bytes+1<<10-1)>>10)
	if len(done.Failed) > 0 {
		return fmt.Errorf("push: %s did not go", text.Count(len(done.Failed), "file"))
	}
	return nil
}

// pushOn pushes until it is interrupted, and then once more: an agent that ends at the same time writes its last rows.
func pushOn(ctx context.Context, p *objectstore.Push, every time.Duration, place objectstore.Place) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	quiet := false // what is in order and has nothing new is told once
	for {
		done, err := p.Do(ctx)
		switch {
		case ctx.Err() != nil:
			return lastPush(p, place)
		case err != nil:
			say("push: %v; trying again in %s", err, text.Duration(every))
			quiet = false
		case done.Sent > 0 || len(done.Failed) > 0 || !quiet:
			if err := pushed(done, place); err != nil {
				say("%v; trying again in %s", err, text.Duration(every))
			}
			quiet = true
		}
		select {
		case <-ctx.Done():
			return lastPush(p, place)
		case <-tick.C:
		}
	}
}

// unpushed is the error of the push after an interrupt. That is not its reason, so that it is told and counts as a failure.
type unpushed struct{ error }

// lastPush has as long as systemd leaves before it kills, with some to spare. Its error is an unpushed.
func lastPush(p *objectstore.Push, place objectstore.Place) error {
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	done, err := p.Do(ctx)
	if err == nil {
		err = pushed(done, place)
	}
	if err != nil {
		return unpushed{fmt.Errorf("after the interrupt: %w", err)}
	}
	return nil
}
