package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/demand/store"
	"github.com/unthrottle/unthrottle/internal/text"
)

// mostAfter bounds --after.
const mostAfter = 31 * 24 * time.Hour

func newJoin() *cobra.Command {
	var after time.Duration
	cmd := &cobra.Command{
		Use:   "join DIR",
		Short: "Join the small files of a fleet's hours into few, which are read seven times as fast",
		Long: `Join the files that hosts wrote below DIR, a file for each host and hour, into one
for each hour, or a few where an hour has more than 100,000 rows. The files that were
joined are removed when the new one is whole. Hours under way are left alone.

Files that come late stay what they are until the next call. A file that was joined
and comes again, as by rsync, is removed. What cannot be read stays, and is told.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || inStore(args[0]) {
				return errors.New("join: give one folder: 'unthrottle fleet join DIR'; files in a store are joined before they " +
					"go there")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if after < 0 || after > mostAfter {
				return fmt.Errorf("--after %s: give 0s to %s", after, text.Duration(mostAfter))
			}
			done, err := store.Join{Ended: time.Now().Add(-after), Progress: func(hour string, before, after int) {
				say("%s: %s, now %d", text.Sanitize(hour, 0), text.Count(before, "file"), after)
			}}.Do(cmd.Context(), args[0])
			for _, why := range done.Left {
				say("left as it is: %s", text.Sanitize(why.Error(), 0))
			}
			if err != nil {
				return err
			}
			again := ""
			if done.Again > 0 {
				again = fmt.Sprintf("; %s had been joined before and came again: removed", text.Count(done.Again, "file"))
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, now %d%s\n", text.Count(done.Hours, "hour"),
				text.Count(done.Before, "file"), done.After, again)
			return err
		},
	}
	cmd.Flags().DurationVar(&after, "after", time.Hour,
		"join hours that ended this `TIME` ago: hosts add to a file for some minutes after, or longer where their disk was "+
			"full")
	return cmd
}
