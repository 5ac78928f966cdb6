package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/test/lab/suite"
)

func goroutinesCommand() *cobra.Command {
	var none, repeating bool
	cmd := &cobra.Command{
		Use:   "goroutines",
		Short: "Print the packages in which a test that states no need may start a goroutine",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			packages, without, err := suite.Goroutines(cmd.Context())
			if err != nil {
				return err
			}
			if none {
				packages = without
			}
			if repeating {
				if packages, err = suite.Repeating(cmd.Context(), packages); err != nil {
					return err
				}
			}
			fmt.Fprintln(cmd.OutOrStdout(), strings.Join(packages, " "))
			return nil
		},
	}
	cmd.Flags().BoolVar(&none, "none", false, "print the others")
	cmd.Flags().BoolVar(&repeating, "repeating", false, "print only those whose tests repeat less under -short")
	return cmd
}
