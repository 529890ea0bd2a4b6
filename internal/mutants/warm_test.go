package mutants

const (
	warmStart  = "accumulator/stream/warmstart.go"
	warmCatch  = "accumulator/stream/warmcatch.go"
	warmKept   = "accumulator/stream/warmkept.go"
	warmRules  = "accumulator/stream/warm.go"
	onTheSim   = "accumulator"
	inDoubt    = "TestG1G2WhateverIsInDoubtIsAListAndSaysWhy"
	neverWrong = "never a snapshot wrong: where anything is in doubt, the watch starts with a list"
)

// warmStarts are mistakes where a watch begins with what was kept in files (WithWarmStart).
var warmStarts = []mutant{
	{
		name: "warm: a witness that the server does not have is no objection", says: neverWrong, file: "coherence/warm.go",
		caught: "TestW3AWitnessThatTheWatchHasNotChangedMustBeOnTheServer",
		old:    `			return Contradicted`, new: `			continue`,
	},
	{
		name: "warm: nobody asks the witnesses", says: neverWrong, file: warmCatch, in: onTheSim, caught: inDoubt,
		old: `	if err := w.verdict(p.answered); err != nil {`, new: `	if err := w.verdict(p.answered); err != nil && ctx == nil {`,
	},
	{
		name: "warm: a server that is behind the file is believed", says: neverWrong, file: warmStart, in: onTheSim, caught: inDoubt,
		old: `	case coherence.Newer(w.head.Position, p.rv):`, new: `	case coherence.Newer(w.head.Position, p.rv) && p.rv == "":`,
	},
	{
		name: "warm: the number of objects is not compared", says: neverWrong, file: warmCatch, in: onTheSim, caught: inDoubt,
		old: `n != c.objects {`, new: `n != c.objects && n < 0 {`,
	},
	{
		name: "warm: the present is not waited for", says: "The first snapshot is complete when that watch has reached the present", file: warmCatch, in: onTheSim,
		caught: "TestG1NothingIsShownBeforeAQuietWatchHasReachedThePresent",
		old:    `func (c *catching) reached() bool { return !coherence.Newer(c.rv, c.at) }`, new: `func (c *catching) reached() bool { return c.at != "" }`,
	},
	{
		name: "warm: a bookmark of an old version is the present", says: "The first snapshot is complete when that watch has reached the present", file: warmCatch, in: onTheSim,
		caught: "TestG2ABookmarkThatRepeatsAnOldVersionIsNotThePresent",
		old: `	case e.Type == watch.Bookmark:
		return nil`, new: `	case e.Type == watch.Bookmark:
		c.at = c.rv
		return nil`,
	},
	{
		name: "warm: a file of something else is read", says: neverWrong, file: warmStart, in: onTheSim, caught: inDoubt,
		old: `	case differs != "":`, new: `	case differs != "" && age < 0:`,
	},
	{
		name: "warm: a file may be of any age", says: neverWrong, file: warmStart, in: onTheSim, caught: inDoubt,
		old: `	case age > FileMost || age < -FileMost:`, new: `	case age < -FileMost:`,
	},
	{
		name: "warm: changes are read with another base", says: neverWrong, file: warmStart, in: onTheSim, caught: inDoubt,
		old: `	case base.Head.ID != w.head.Base || base`, new: `	case base`,
	},
	{
		name: "warm: a change while the base is written is lost", says: neverWrong, file: stream, in: onTheSim,
		caught: "TestG5ABaseThatIsWrittenWhileObjectsChangeIsRightWithItsChanges",
		old: `		s.progress.kept.note(key, len(s.store.objects))
`, new: ``,
	},
	{
		name: "warm: a base goes on after a list", says: neverWrong, file: warmKept, in: onTheSim,
		caught: "TestModelG4G5G6AWarmStartShowsThePresentWhateverWasKept",
		old: `	k.origin, k.base = k.asked, from
`, new: `	if k.origin = k.asked; from != nil || k.base == nil {
		k.base = from
	}
`,
	},
	{
		name: "warm: a kind that is gone is kept as empty", says: neverWrong, file: "accumulator/stream/health.go", in: onTheSim,
		caught: "TestAKindThatIsGoneIsNotKeptAsEmpty",
		old: `		s.progress.kept.forget()
`, new: ``,
	},
	{
		name: "warm: Secrets are kept as they are", says: "Secrets, too, which are not kept otherwise", file: warmRules, in: "kates",
		caught: "TestSecretsAreInNoFileWithoutAKeyAndUnreadableWithOne",
		old:    `	case w.Codec.Key == nil && secret`, new: `	case w.Every == 0 && secret`,
	},
	{
		name: "warm: what a function has transformed is kept", says: "a function of another process may do something else", file: warmRules, in: onTheSim,
		caught: "TestObjectsOfATransformAreNotKept",
		old: `	case s.transform != nil:
		return transforms`, new: `	case s.transform != nil && w.Every == 0:
		return transforms`,
	},
	{
		name: "warm: Close writes nothing", says: "and by", file: "accumulator/stream/set.go", in: onTheSim,
		caught: "TestG1G2AWarmStartListsNothingAndShowsThePresent",
		old: `		s.saver.last()
`, new: `		_ = s.saver.last
`,
	},
	{
		name: "warm: a damaged file is read", says: neverWrong, file: "internal/warm/seal.go",
		caught: "TestADamagedFileIsAnErrorWhereverItIsDamaged",
		old:    `s.sum(kind, place, payload)) == 0 {`, new: `s.sum(kind, place, payload)) > 1 {`,
	},
	{
		name: "warm: everybody can read the folder", says: "can be read by the user of the program alone", file: "internal/warm/store.go",
		caught: "TestNobodyElseCanReadTheFiles",
		old:    `0o700`, new: `0o755`,
	},
}
