package mutants

const (
	redacting = "internal/recording/redact.go"
	histories = "internal/recording/build.go"
	playing   = "internal/recording/player.go"

	staysOut   = "secrets stay out of a recording"
	playedBack = "a replay shows at each position what was there, at every speed"
)

// recorded are mistakes in recording what clients read, and in playing it back.
var recorded = []mutant{
	{
		name: "copies of a Secret in its annotations are recorded", says: staysOut, file: "internal/secret/secret.go", in: "internal/recording", caught: "TestSecretsAreRedactedWhateverTheyComeIn",
		old: `annotations[name] = hideAll(value, false, mask)`,
		new: `_ = value`,
	}, {
		name: "a redacted value can be guessed", says: staysOut, file: redacting, caught: "TestRedactedValuesAreEqualWhereTheyWereEqual",
		old: `_, _ = rand.Read(r.key) // never fails`,
		new: `_ = rand.Reader`,
	}, {
		name: "what cannot be redacted is recorded as it is", says: staysOut, file: "internal/recording/recorder.go", caught: "TestSecretsAreRedactedWhateverTheyComeIn",
		old: `		t.withhold(err.Error())`,
		new: `		r.writer.put(head{Type: typePart, ID: t.id}, t.held)`,
	}, {
		name: "a token of the client is recorded", says: staysOut, file: "internal/recording/recorder.go", caught: "TestAFunctionRedactsWhatItWants",
		old: `if bytes.Contains(text, token) {`,
		new: `if false && token != nil {`,
	}, {
		name: "a crash loses the recording", says: "a recording is readable up to a crash", file: "internal/recording/writer.go", caught: "TestAfterACrashTheFileIsReadableUpToThere",
		old: `err = packed.Flush()`,
		new: `_ = packed`,
	}, {
		name: "an event is later than a list that shows it", says: playedBack, file: histories, caught: "TestAListThatShowsNothingNewMissesNothing",
		old: `entries[n].at = min(entries[n].at, entries[n+1].at)`,
		new: `_ = min(entries[n].at, entries[n+1].at)`,
	}, {
		name: "what no watch has seen is passed over", says: playedBack, file: histories, caught: "TestWhatWasMissedEndsWatchesAndIsListedAgain",
		old: `if all.stateAt(len(all.entries)).same(l.state) {`,
		new: `if all.stateAt(len(all.entries)).same(l.state) || true {`,
	}, {
		name: "an old list goes back", says: playedBack, file: histories, caught: "TestAListThatShowsNothingNewMissesNothing",
		old: `if compareVersions(l.version, s.version) <= 0 {`,
		new: `if l.version == s.version {`,
	}, {
		name: "the fastest replay leaves a slow reader behind", says: playedBack, file: playing, caught: "TestTheFastestReplayWaitsForNothingButItsReaders",
		old: `if !b.waiting || b.ready(at) {`,
		new: `if b.ready(at) {`,
	}, {
		name: "the clock does not wait for the first request", says: playedBack, file: playing, caught: "TestAReplayKeepsTheTimesAtItsSpeed",
		old: `	return &Player{
		tape: t,`,
		new: `	return &Player{
		since: time.Now(),
		tape: t,`,
	}, {
		name: "a list knows nothing of other watches of its resource", says: playedBack, file: "internal/recording/answering.go", caught: "TestAListIsAsNewAsAnotherWatchOfItsResource",
		old: `at, false); compareVersions(want, newest) > 0 {`,
		new: `at, false); compareVersions(want, newest) > 0 || true {`,
	},
}
