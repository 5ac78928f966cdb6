package accuracy

import "github.com/unthrottle/unthrottle/internal/scenario"

// JudgeScenario compares runs of a scenario by the rule of draws: simulated ones and real ones, at least one and two.
func JudgeScenario(s scenario.Scenario, simulated, real []scenario.Outcome) Judgement {
	return judge(Draw{scenario: s}, simulated, real)
}
