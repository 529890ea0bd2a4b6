package mutants

const (
	masking   = "internal/golden/mask.go"
	judging   = "internal/trial/settle.go"
	crashing  = "internal/trial/crash.go"
	intercept = "internal/trial/recorder.go"
	awaiting  = "kates/katestest/assert.go"

	sameText  = "a golden file is the same in each run, and has no secrets"
	settles   = "a program settles, or the test shows its loop"
	converges = "a program converges after a crash anywhere"
	shows     = "a test waits for what a watch shows, and shows it"
)

// asserted are mistakes in the assertions of the test kit.
var asserted = []mutant{
	{
		name: "an untyped Secret is shown", says: sameText, file: masking, caught: "TestSecretsAreHashedWhateverTheyComeIn",
		old: `case secret.Is(t):`,
		new: `case secret.Is(nil):`,
	}, {
		name: "a copy of a Secret in its annotations is shown", says: sameText, file: "internal/secret/secret.go", in: "internal/golden", caught: "TestSecretsAreHashedWhateverTheyComeIn",
		old: `all[name] = hideAnnotations(value, mask)`,
		new: `all[name] = value`,
	}, {
		name: "equal UIDs have different masks", says: sameText, file: masking, caught: "TestWhatDiffersFromRunToRunIsMasked",
		old: `if mask, known := (*of)[value]; known {`,
		new: `if mask, known := (*of)[value]; known && false {`,
	}, {
		name: "a date of the program's is masked", says: sameText, file: masking, caught: "TestWhatDiffersFromRunToRunIsMasked",
		old: `if !strings.HasSuffix(name, "time") && !strings.HasSuffix(name, "timestamp") {`,
		new: `if name == "" {`,
	}, {
		name: "a flag of the package is defined twice", says: sameText, file: "internal/golden/flag.go", in: "internal/golden/ownflag", caught: "TestAFlagOfThePackageStaysItsOwn",
		old: `	if flag.Lookup(updateFlag) == nil {`,
		new: `	if flag.Lookup(updateFlag) == nil || true {`,
	}, {
		name: "an object's made-up name is a difference", says: converges, file: masking, caught: "TestTheStateIsThatOfTheObjectsHoweverTheyCame",
		old: `if name, made := madeUp(metadata); made && m.state {`,
		new: `if name, made := madeUp(metadata); made && m.bare {`,
	}, {
		name: "a program settles with a call under way", says: settles, file: judging, in: "internal/trial", caught: "TestALoopOfRefusedCallsShowsTheAnswers",
		old: `case p.open > 0:`,
		new: `case p.open < 0:`,
	}, {
		name: "calls count for ever", says: settles, file: judging, caught: "TestASettledProgramAnswersTheNextInput",
		old: `				r.settled = p.calls
`,
		new: ``,
	}, {
		name: "two writers who undo each other's work are one", says: settles, file: "internal/trial/loop.go", caught: "TestTwoWritersWhoUndoEachOthersWorkAreARoundOfTwo",
		old: `range []bool{true, false} {`,
		new: `range []bool{false} {`,
	}, {
		name: "an endless answer is read to its end", says: settles, file: intercept, caught: "TestAnEndlessAnswerIsNoCall",
		old: `!streams[c.Subresource] && `,
		new: ``,
	}, {
		name: "goroutines may go on", says: settles, file: "internal/trial/run.go", caught: "TestWhatAProgramLeavesBehindFailsTheTest",
		old: `		left := r.goroutines()
`,
		new: `		left := ""
`,
	}, {
		name: "an error in a bubble sleeps for decades", says: settles, file: "internal/trial/bubble.go", caught: "TestWhatAProgramLeavesBehindFailsTheTest",
		old: `utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]`,
		new: `utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:2]`,
	}, {
		name: "the write before which a program crashes is stored", says: converges, file: intercept, caught: "TestACrashBeforeAWriteThatIsNotMadeUpForFails",
		old: `			if !r.crash.After {
				r.stopped = true
`,
		new: `			if false {
				r.stopped = true
`,
	}, {
		name: "a crash is over before its write is stored", says: converges, file: intercept, caught: "TestTheAnswerOfTheLastWriteMayMatter",
		old: `crashed: r.crashed != nil && r.stopped, changed`,
		new: `crashed: r.crashed != nil, changed`,
	}, {
		name: "a crashed program gets its answer", says: converges, file: intercept, caught: "TestTheAnswerOfTheLastWriteMayMatter",
		old: `			_ = resp.Body.Close() // the program does not get it
		}
		return nil, ErrStopped
`,
		new: `			return resp, nil
		}
`,
	}, {
		name: "only the last end is compared", says: converges, file: crashing, caught: "TestCrashesComeAfterEachStep",
		old: `			for i := range want {
`,
		new: `			for i := len(want) - 1; i < len(want); i++ {
`,
	}, {
		name: "an incomplete snapshot satisfies", says: shows, file: awaiting, caught: "TestUntilSaysWhyNoSnapshotIsComplete",
		old: `case (changed || ready) && satisfied(snap):`,
		new: `case satisfied(snap):`,
	}, {
		name: "a snapshot that was read before does not satisfy", says: shows, file: awaiting, caught: "TestUntilReturnsTheSnapshotThatSatisfies",
		old: `ready := snapshots.Ready() == nil // then`,
		new: `ready := snapshots.Ready() == snapshots.Status().Err() && false // then`,
	}, {
		name: "a step ends while programs work", says: shows, file: "kates/katestest/sequence.go", caught: "TestAStepOfASequenceEndsWhenProgramsAreDone",
		old: `		if !changed {
			return nil
`,
		new: `		if !changed || s.Quiet > 0 {
			return nil
`,
	},
}
