package mutants

const (
	noneQuotes   = "TestNoErrorOfARequestQuotesASecret"
	statusQuotes = "TestNoStatusOfAWatchQuotesASecret"
	withholding  = "kates/write_withheld.go"
)

// telling are mistakes that put the content of a Secret into an error.
var telling = []mutant{
	{
		name: "an answer without a kind is quoted", says: "Its errors quote nothing", file: "internal/wire/connection.go",
		in: "kates", caught: noneQuotes,
		old: `discreet{config.NegotiatedSerializer}`, new: `config.NegotiatedSerializer`,
	},
	{
		name: "an answer of metadata without a kind is quoted", says: "Its errors quote nothing", file: "internal/wire/metadata.go",
		caught: "TestNoClientQuotesAnAnswerThatItCannotDecode",
		old:    `discreet{metainternalversionscheme.Codecs.WithoutConversion()}`, new: `metainternalversionscheme.Codecs.WithoutConversion()`,
	},
	{
		name: "what a damaged Secret has twice is quoted", says: "could quote the secret", file: "internal/wire/decode.go",
		in: "kates", caught: statusQuotes,
		old: `if r.Kind.Kind == "Secret" {`, new: `if r.Kind.Kind == "-" {`,
	},
	{
		name: "the server's words about a Secret are passed on", says: "without the Secret's content", file: withholding,
		caught: noneQuotes,
		old:    `hide.Replace(text) != text {`, new: `false && hide.Replace(text) != text {`,
	},
	{
		name: "the server's answer beneath the error quotes the Secret", says: "without the Secret's content", file: withholding,
		caught: noneQuotes,
		old:    `status.Message = hide.Replace(status.Message)`, new: `_ = status.Message`,
	},
	{
		name: "the causes of a refusal quote the Secret", says: "without the Secret's content", file: withholding,
		caught: noneQuotes,
		old:    `status.Details.Causes[i].Message = hide.Replace(status.Details.Causes[i].Message)`, new: `_ = i`,
	},
	{
		name: "what a patch sends may be quoted", says: "of the patch of it that was sent", file: "kates/write.go",
		caught: "TestNoErrorQuotesWhatAPatchSendsAlone",
		old: `	o.sent = data
`, new: ``,
	},
	{
		name: "what Modify sends may be quoted", says: "of the patch of it that was sent", file: "kates/write_modify.go",
		caught: "TestNoErrorQuotesWhatAPatchSendsAlone",
		old: `	m.object.sent = data
`, new: ``,
	},
}
