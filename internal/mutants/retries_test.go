package mutants

const (
	once = "internal/wire/once.go"

	noneTwice   = "TestNoWriteThatMayHaveBeenStoredIsSentTwiceAndEveryReadIs"
	statusless  = "TestAStatusOfAKindThatHasNoneIsSaidToWhoMayNotGetTheObject"
	fakesStatus = "TestAStatusOfABuiltInKindThatHasNoneIsAnErrorOnTheFakeToo"
)

// repeated are mistakes in what is sent again, and in what is said of a status that a kind lacks.
var repeated = []mutant{
	{
		name: "client-go sends writes again", says: "The client sends no such write again", file: "internal/wire/connection.go",
		in: "kates", caught: "TestG4NoWriteIsStoredTwiceAndTheWatchTellsWhatBecameOfIt",
		old: `	config.WrapTransport = transport.Wrappers(config.WrapTransport, Once)
`, new: `	_ = transport.Wrappers
`,
	},
	{
		name: "only POST is not sent again", says: "The client sends no such write again", file: once, caught: noneTwice,
		old: `|| reads[r.Method] {`, new: `|| r.Method != http.MethodPost {`,
	},
	{
		name: "a read is given up at the first 5xx", says: "Reads are always sent again", file: once, caught: noneTwice,
		old: `|| reads[r.Method] {`, new: `{`,
	},
	{
		name: "only 503 is not sent again", says: "the server answered 5xx", file: once, caught: noneTwice,
		old: `response.StatusCode < http.StatusInternalServerError`, new: `response.StatusCode != http.StatusServiceUnavailable`,
	},
	{
		name: "a write that the server has not begun is given up", says: "Only what the server has not begun (429) is sent again", file: once,
		caught: "TestAWriteThatTheServerHasNotBegunIsSentAgain",
		old:    `< http.StatusInternalServerError`, new: `< http.StatusTooManyRequests`,
	},
	{
		name: "an answer of the user's transport is changed", says: "it may be shared", file: once,
		caught: "TestTheUsersTransportsAnswerIsJudgedAndLeftAsItIs",
		old:    `final.Header = maps.Clone(response.Header)`, new: `_ = maps.Clone[http.Header]`,
	},
	{
		name: "who may not get the object is told that it is gone", says: "If the kind has no status subresource, the error says so", file: "kates/write.go",
		caught: statusless,
		old:    `return c.core.kinds.LacksSubresource(`, new: `return false && c.core.kinds.LacksSubresource(`,
	},
	{
		name: "what discovery does not say is no", says: "nobody knows", file: "internal/kinds/subresource.go",
		in: "kates", caught: statusless,
		old: `	if err != nil {
		return false`, new: `	if err != nil {
		return true`,
	},
	{
		name: "the fake takes the status of a ConfigMap for the whole object", says: "The fake knows this of built-in kinds", file: "kates/client_fakestatus.go",
		caught: fakesStatus,
		old:    `if op.subresource != statusSubresource || !ofKubernetes(kind) {`, new: `if op.subresource != "" || !ofKubernetes(kind) {`,
	},
}
