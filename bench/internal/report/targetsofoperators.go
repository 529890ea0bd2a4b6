package report

// operatorTarget is a bound on the ratio of the operator on kates to the one on
// controller-runtime in the same run.
type operatorTarget struct {
	text   string
	phase  Phase
	metric OperatorMetric
	most   float64
}

var operatorTargets = []operatorTarget{
	{"Operator, until all is right: 0.95× controller-runtime", PhaseStart, OperatorTime, 0.95},
	{"Operator, CPU until it is idle: 0.95× controller-runtime", PhaseStart, OperatorCPU, 0.95},
	{"Operator, one change until it is right, p50: 0.95× controller-runtime", PhasePaced, OperatorP50, 0.95},
	{"Operator, CPU of a restart: 0.95× controller-runtime", PhaseRestart, OperatorCPU, 0.95},
	{"Operator, requests of a restart: 2× controller-runtime", PhaseRestart, OperatorRequests, 2},
}

// besideOperator is the operator that kates' is compared with.
const besideOperator = "cr"

// operatorVerdicts judges the targets of operators. Operators may be nil.
func operatorVerdicts(o *Operators) (all []verdict) {
	if o == nil {
		return nil
	}
	for _, t := range operatorTargets {
		ours, theirs := o.runs(ratioTo, t.phase, t.metric, ""), o.runs(besideOperator, t.phase, t.metric, "")
		if v, ok := judged(verdict{text: t.text, most: t.most, isRatio: true}, ours, theirs); ok {
			all = append(all, v)
		}
	}
	return all
}
