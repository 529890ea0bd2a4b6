package mutants

const (
	healthFile = "kates/health.go"
	neverBack  = "TestReadyzIsReadyOnceCompleteAndNeverBack"
	hanging    = "TestAFunctionOfTheUserThatHangsMakesTheClientUnhealthy/"
	hangs      = "HealthCheck says what hangs"
)

// healthy are mistakes in health checks.
var healthy = []mutant{
	{
		name: "a program that was ready is not any more", says: "from then on for ever", file: healthFile, caught: neverBack,
		old: `			all[i].Err = nil // never back`, new: `			_ = i // back`,
	},
	{
		name: "a fleet that was ready is not any more", says: "from then on for ever", file: "fleet/health.go",
		caught: "TestAFleetThatWasReadyStaysReady",
		old:    `			all[i].Err = nil // never back`, new: `			_ = i // back`,
	},
	{
		name: "a program is ready before it watches", says: "with one watch open at least", file: healthFile, caught: neverBack,
		old: `	if len(watches) == 0 {`, new: `	if len(watches) < 0 {`,
	},
	{
		name: "the server's words are for all who may probe", says: "no errors of the server", file: healthFile, caught: neverBack,
		old: `briefs[name] = missingOf(in)`, new: `briefs[name] = missingOf(in) + in.Incomplete.Error()`,
	},
	{
		name: "an object of a list that hangs is not noticed", says: hangs, file: listing, in: inKates, caught: hanging + "transform",
		old: `	l.stream.step.Begin()
	defer l.stream.step.End()
`, new: ``,
	},
	{
		name: "an event that hangs is not noticed", says: hangs, file: watching, in: inKates, caught: hanging + "signal",
		old: `	f.step.Begin()
	defer f.step.End()
`, new: ``,
	},
	{
		name: "an own write that hangs is not noticed", says: hangs, file: write, in: inKates, caught: hanging + "own_write",
		old: `shows it (Transform, Signal)")()`, new: `shows it (Transform, Signal)")`,
	},
	{
		name: "a reader that hangs is not noticed", says: hangs, file: "accumulator/collect/inspect.go", in: inKates, caught: hanging + "predicate",
		old: `		Turn: &c.reading,
`, new: `		Turn: &watchdog.Pulse{},
`,
	},
	{
		name: "an observer that hangs is not noticed", says: hangs, file: "kates/observe_told.go", caught: hanging + "observer",
		old: `	defer o.working.Begin(what)()
`, new: ``,
	},
	{
		name: "a call is overdue before its time", says: "takes longer than that", file: inLoops, in: inKates,
		caught: "TestACallThatTakesTooLongIsUnhealthyIfTheOptionSaysSo",
		old:    `		if d <= c.Limit {`, new: `		if d < c.Limit {`,
	},
	{
		name: "another step of a busy reader is the one that was seen", says: "it counts from the first time", file: "internal/watchdog/watchdog.go",
		caught: "TestAStepIsAsOldAsTheFirstLookAtIt",
		old:    `seen == nil || seen.beat != beat`, new: `seen == nil || seen.beat == 0`,
	},
}
