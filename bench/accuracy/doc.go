// Package accuracy is the study of how true the simulator is: random scenarios for real and simulated, judged by package
// internal/sim/agreement, and what the simulator makes of published figures. docs/results/accuracy.md is its page.
//
// # Limits
//
// Beside the share of draws that agree is the ceiling: how often one real run, in the simulator's place, agrees with the others
// of its draw. Draws with fewer than three real runs are not judged.
package accuracy
