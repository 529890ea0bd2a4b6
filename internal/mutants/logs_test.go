package mutants

const (
	logLines  = "internal/podlogs/given.go"
	logReader = "internal/podlogs/reader.go"

	everyLineOnce = "TestEveryLineComesOnceWhateverHappensToConnections"
)

// following are mistakes in logs that are followed.
var following = []mutant{
	{
		name: "a log that is resumed repeats lines", says: "Each line comes once", file: logLines, caught: everyLineOnce,
		old: `		r.left[l]--
		return true`, new: `		return false`,
	},
	{
		name: "lines of one time are not told apart", says: "Each line comes once", file: logLines, caught: "TestLinesOfOneTimeAreToldApart",
		old: `r.left[l]--`, new: ``,
	},
	{
		name: "an end in good order is the end of the log", says: "It has ended when the container has ended for good", file: logReader, caught: everyLineOnce,
		old: `case t.err == nil && t.new == 0 && t.before.state == ended:`, new: `case t.err == nil:`,
	},
	{
		name: "what a container wrote before it was started again is not read", says: "what the container had written before is read first", file: logReader,
		caught: "TestOfAContainerThatRestartsWhatItWroteLastIsReadFirst",
		old:    `if t.now.restarts > r.restarts {`, new: `if t.now.restarts < r.restarts {`,
	},
	{
		name: "a line that is cut is given", says: "Each line comes once", file: logReader, caught: everyLineOnce,
		old: `case s.grows, p.at.IsZero(): // a cut timestamp, for example
		return false`, new: `case s.grows:
		return true`,
	},
	{
		name: "the log of another pod of the name is read", says: "It reads all containers of the pod", file: logReader, caught: "TestAnotherPodOfTheNameIsNotRead",
		old: `r.UID != "" && pod.UID != r.UID`, new: `r.UID == "" && pod.UID != r.UID`,
	},
	{
		name: "what a patch of a status sets is not compared", says: "What the server drops of a status that the patch sets is an error", file: "internal/patch/written.go",
		in: "kates/katestest", caught: "TestSuite/G4WhatTheServerDropsOfAStatusIsAnErrorAndTheRestIsStored",
		old: `	if pt == types.StrategicMergePatchType {
		set,`, new: `	if pt == types.MergePatchType {
		return nil
	}
	if pt == types.StrategicMergePatchType {
		set,`,
	},
}
