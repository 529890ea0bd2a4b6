package mutants

const (
	kubeconfigs = "fleet/source/kubeconfig.go"
	mayNot      = "So a configuration from a cluster may do neither"
	mayNotTest  = "TestWhatAKubeconfigMayNotDoIsRefusedByName"
)

// sourced are mistakes about where the clusters of a fleet come from.
var sourced = []mutant{
	{
		name: "a kubeconfig from a cluster runs programs", says: mayNot, file: kubeconfigs, caught: mayNotTest + "/exec",
		old: `if r.does && a&r.allow == 0 {`, new: `if r.does && a&r.allow == 0 && r.allow != AllowExec {`,
	},
	{
		name: "a kubeconfig from a cluster reads a token from a file", says: mayNot + " (tokenFile)", file: kubeconfigs, caught: mayNotTest + "/tokenFile",
		old: `{AllowFiles, user.TokenFile != "",`, new: `{AllowFiles, user.TokenFile == "-",`,
	},
	{
		name: "the error of a broken kubeconfig quotes it", says: "No error has a part of a credential", file: kubeconfigs, caught: "TestABrokenKubeconfigIsNotQuoted",
		old: `"the kubeconfig does not parse%s", lineOf(err))`, new: `"the kubeconfig does not parse %w", err)`,
	},
	{
		name: "a user without credentials is anonymous", says: "broken, half written or refused", file: kubeconfigs, caught: "TestABrokenKubeconfigIsNotQuoted",
		old: `case !hasCredentials(user) &&`, new: `case user.Token == "-" &&`,
	},
	{
		name: "an address that lacks a slash is a server called https", says: "So a URL with a slash too few would be a host that is called https",
		file: kubeconfigs, caught: "TestAnAddressThatLacksASlashIsRefusedAndIsNotAServerCalledHTTPS",
		old: `	case strings.EqualFold(u.Hostname(), "https") ||`, new: `	case u.Hostname() == "" ||`,
	},
	{
		name: "TLS is only what begins with https", says: "A server that is a name alone is,", file: kubeconfigs,
		caught: "TestAUserWithoutCredentialsIsRefusedHoweverTheServerOfTLSIsWritten",
		old:    `!hasCredentials(user) && encrypted(cluster):`, new: `!hasCredentials(user) && encrypted(cluster) && strings.HasPrefix(cluster.Server, "https:"):`,
	},
	{
		name: "a half-written file removes its cluster", says: "does not parse because it is half written, is an error of its cluster",
		file: "fleet/source/directory.go", caught: "TestAHalfWrittenFileRemovesNothing",
		old: `		all.add("file "+name, files[name].member)`, new: `		if files[name].member.Err == nil {
			all.add("file "+name, files[name].member)
		}`,
	},
	{
		name: "a file that was young when it was read is not read again", says: "a file that was young then is read once more",
		file: "fleet/source/files.go", caught: "TestAFileThatHasNotChangedIsNotRead",
		old: `s.at.Sub(now.ModTime()) > young`, new: `s.at.Sub(now.ModTime()) > -24*365*time.Hour`,
	},
	{
		name: "a context that is gone at one look leaves", says: "once it is gone at two looks, because a half-written file may parse",
		file: "fleet/source/contexts.go", caught: "TestContextsAreClusters",
		old: `if lacks(all, last) && (`, new: `if lacks(all, nil) && (`,
	},
	{
		name: "Flux's second default key wins", says: "default: value, or else value.yaml", file: "fleet/source/flux.go", caught: "TestWhatFluxNamesAreClusters",
		old: `var fluxKeys = []string{"value", "value.yaml"}`, new: `var fluxKeys = []string{"value.yaml", "value"}`,
	},
	{
		name: "a kind that may not be read is empty", says: "refuses for lack of rights, all clusters stay", file: "fleet/source/home.go",
		caught: "TestAKindThatFluxMayNotReadIsNotEmpty",
		old:    `if empty[q.Name] && q.State != kates.StateMissing {`, new: `if empty[q.Name] && q.State == kates.StateMissing {`,
	},
	{
		name: "the younger of two that name a cluster counts", says: "the older one counts", file: "fleet/source/home.go",
		caught: "TestOfTwoSecretsForOneClusterTheOlderCounts",
		old:    `return x.Compare(y.Time)`, new: `return y.Compare(x.Time)`,
	},
	{
		name: "all of a Secret is held", says: "Of a Secret only what is needed is held in memory", file: "fleet/source/secrets.go",
		caught: "TestOnlyTheDataThatIsNeededIsHeld",
		old:    `return !keep(key) })`, new: `return key == "" })`,
	},
	{
		name: "a refusal of a token is an answer of the cluster", says: "It is not wrapped: a refusal of the home cluster is no answer of this one",
		file: "fleet/source/tokens.go", caught: "TestATokenIsRenewedBeforeItEnds",
		old: `"get a token of the home cluster: %v", err)`, new: `"get a token of the home cluster: %w", err)`,
	},
	{
		name: "a token is used until its end", says: "They are renewed in time", file: "fleet/source/tokens.go", caught: "TestATokenIsRenewedBeforeItEnds",
		old: `const renewal = time.Minute`, new: `const renewal = 0`,
	},
}
