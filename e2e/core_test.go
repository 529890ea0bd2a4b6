package e2e

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	coreAlone   = flag.Bool("core", false, "without -run: run the tests of the table core, and with -memory those of the list inMemory")
	restAlone   = flag.Bool("rest", false, "without -run: run the tests that -core -memory leaves out")
	memoryAlone = flag.Bool("memory", false, "without -run: run the tests of the list inMemory; without -core, start no cluster")
	allReal     = flag.Bool("real", false, "run the tests of the list inMemory on the real server, too")
)

// core are the tests that each commit has to pass: at least one of each guarantee, and of each
// area in which only a real API server shows whether the library works. They are fast.
var core = []struct{ area, test, shows string }{
	{"the suite", "TestSuite", "the scenarios that a real server may decide otherwise"},
	{"pages", "TestG1ListsComeInPagesOfTheSizeThatWasSet", "etcd's pages and their continue tokens"},
	{"warm starts", "TestG1G2AWarmStartShowsThePresentAndListsNothing", "a watch from the version of another process"},
	{"bookmarks", "TestG2SyncReturnsWhenALateWatchHasCaughtUp", "the progress that etcd tells, in bookmarks"},
	{"own writes", "TestG3G6CreateAndDelete2000TimesWhileTheWatchIsStalled", "2,000 real versions that come late at once"},
	{"own writes", "TestG4EveryWriteMethodShowsItsEffectAtOnceThoughTheWatchIsLate", "the answers of a real server to each verb"},
	{"own writes", "TestG4ADeletedObjectIsGoneOrTerminatingByEveryKindOfAnswer", "what a real server answers to a deletion"},
	{"own writes", "TestG4TypedWritesOfEveryVerbAndPatchTypeShowAtOnceThoughTheWatchIsLate", "answers in real protobuf"},
	{"subresources", "TestG4ABoundPodIsShownOnItsNodeAtOnceByEveryQuery", "a binding, which is answered by a Status"},
	{"admission", "TestG4AWriteThatAdmissionDeniesLeavesNoTrace", "a policy that refuses"},
	{"rights", "TestG4AWriteThatIsForbiddenLeavesNoTrace", "an authorizer that refuses"},
	{"versions", "TestG4AWriteThroughOneVersionOfACustomKindIsShownInTheOtherAtOnce", "two served versions of one stored kind"},
	{"apply", "TestApplyOwnedLeavesFieldsOfOtherManagersUnlessForced", "the field managers of a real server"},
	{"apply", "TestApplyOwnedKnowsWhatWasAppliedOfEveryKindOfList", "managed fields of real schemas"},
	{"compaction", "TestG5EtcdIsCompacted", "versions that etcd has forgotten"},
	{"restores", "TestG5AClusterRestoredFromABackupStartsANewHistory", "an etcd whose versions went back"},
	{"watches", "TestG5ACutWatchIsResumedWithoutALossOrASecondList", "the watch cache's window of events"},
	{"conversion", "TestG6AStorageVersionThatMovesIsShownAfterTheNextListInBothForms", "another content of the same version"},
	{"unions", "TestG7TheNamespacesOfAQueryChangeUnderForeignWritersWithOneWatchLate", "real lateness of one watch of several"},
	{"rights", "TestG8ARightThatIsRevokedKeepsWhatIsShownAndResumesWithoutAGap", "an authorizer that changes its mind"},
	{"webhooks", "TestG8AConversionWebhookThatIsDeadIsNamedAndHarmsNoOtherKind", "a webhook that does not answer"},
	{"definitions", "TestG8AnOptionalKindJoinsWhenItIsInstalledAndLeavesWhenItIsRemoved", "real discovery and real definitions"},
	{"suite", "TestSuite/typed/G9SlicesAreOrderedByNamespaceThenName", "the order of etcd's keys"},
	{"typed objects", "TestG10TheDetectorSeesWritesToTypedObjectsOfARealServer", "objects that protobuf has decoded"},
	{"connections", "TestG11CloseEndsTheWatchesOnTheWire", "watches that a real server serves"},
	{"protobuf", "TestATypedQueryOfABuiltInKindSpeaksProtobufAndNothingElse", "the content types of a real server"},
	{"metadata", "TestAMetadataQueryNeverGetsMoreThanMetadataOverTheWire", "the server's conversion to metadata"},
	{"selectors", "TestTheServerTakesExactlyTheFieldsThatAreBuiltIn", "the fields that a real server selects by"},
	{"selectors", "TestBuiltInFieldsAreJudgedAsTheServerDoes", "the values of fields that a real server selects by"},
	{"leases", "TestALeaderSeesAllThatTheFormerOneWroteThoughItsWatchIsLate", "the newest version that etcd tells"},
	{"releases", "TestTheServerIsOfTheVersionThatWasChosen", "what a real server says of itself"},
	{"releases", "TestG1G5AStreamedListIsWholeWhetherTheServerCompressesItOrNot", "the compression of a release"},
	{"releases", "TestAServerThatCompressesAStreamedListBeginsAMemberOfGzipAfterEachFlush", "the compression of a release"},
	{"releases", "TestG1G4SharesAreRightOnServersThatShardAndOnThoseThatDoNot", "the sharding of a release"},
	{"releases", "TestG4VersionsOfOneResourceAreNumbersThatGrow", "the versions of a release"},
	{"releases", "TestG1AKindThatOnlyNewerServersHaveIsAbsentOnOlderOnes", "the kinds of a release"},
	{"releases", "TestADeprecatedKindIsWatchedAndTheWarningOfTheServerIsLoggedOnce", "the warnings of a release"},
	{"releases", "TestAFieldThatTheServerDoesNotKnowIsAnErrorOfApplyThatNamesIt", "the schemas of a release"},
	{"releases", "TestApplyOwnedGoesOnWhereAWriteThroughAnotherVersionLosesWhoManagesTheFields", "the managed fields of a release"},
	{"releases", "TestErrorsOfMetadataHaveTheReasonsThatTheDocumentSays", "the errors of a release"},
	{"releases", "TestAnAutoscalerHasAGenerationWhereTheDocumentSaysSo", "the generations of a release"},
	{"in a pod", "TestAPodsClientUsesItsServiceAccountAndNamespace", "the tokens of a service account"},
}

// chooseTests makes m.Run run the tests of the flags, and no others.
func chooseTests() error {
	flag.Parse()
	if flag.Lookup("test.run").Value.String() != "" {
		return nil // of those that run in memory or not, these were chosen
	}
	var names []string
	if *restAlone {
		for _, c := range core {
			names = append(names, c.test)
		}
		return flag.Set("test.skip", patternOf(append(names, inMemory...)))
	}
	if *coreAlone {
		for _, c := range core {
			names = append(names, c.test)
		}
	}
	if *memoryAlone {
		names = append(names, inMemory...)
	}
	if names == nil {
		return nil
	}
	return flag.Set("test.run", patternOf(names))
}

// patternOf returns the pattern of go test for exactly these tests, with their subtests.
func patternOf(names []string) string {
	var all []string
	for _, name := range names {
		if parent, _, is := strings.Cut(name, "/"); is && slices.Contains(names, parent) {
			continue // it runs with all of its parent
		}
		all = append(all, "^"+strings.ReplaceAll(regexp.QuoteMeta(name), "/", "$/^")+"$")
	}
	return strings.Join(all, "|")
}

// testsHere returns the names of the package's tests.
func testsHere(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				all = append(all, f.Name.Name)
			}
		}
	}
	return all
}

func TestTheCoreHasATestOfEachGuarantee(t *testing.T) {
	here, seen := testsHere(t), map[string]bool{}
	of := map[string]bool{}
	for _, c := range core {
		assert.NotEmpty(t, c.shows, c.test)
		assert.False(t, seen[c.test], "%s is there twice", c.test)
		seen[c.test] = true
		test, sub, _ := strings.Cut(c.test, "/")
		assert.Contains(t, here, test)
		assert.NotContains(t, inMemory, test, "the core runs on the real server")
		for _, name := range []string{strings.TrimPrefix(test, "Test"), sub[strings.LastIndex(sub, "/")+1:]} {
			for _, g := range regexp.MustCompile(`^(G\d+)*`).FindAllString(name, 1) {
				for _, one := range regexp.MustCompile(`G\d+`).FindAllString(g, -1) {
					of[one] = true
				}
			}
		}
	}
	for g := 1; g <= 11; g++ {
		assert.True(t, of[fmt.Sprint("G", g)], "no test of G%d", g)
	}
}

// The document says what each version of Kubernetes does, so each of them has to run its tests.
func TestTheCoreHasTheTestsOfTheDocumentOfVersions(t *testing.T) {
	text, err := os.ReadFile("../docs/versions.md")
	require.NoError(t, err)
	here, of := testsHere(t), map[string]bool{}
	for _, c := range core {
		of[c.test] = true
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(named), 10)
	for _, test := range named {
		assert.True(t, of[test[1]] || !slices.Contains(here, test[1]), "%s is not in the core", test[1])
	}
}

func TestTheListOfTestsInMemoryHasEachOnceAndNoOthers(t *testing.T) {
	here := testsHere(t)
	assert.True(t, slices.IsSorted(inMemory))
	assert.Len(t, slices.Compact(slices.Clone(inMemory)), len(inMemory))
	for _, test := range inMemory {
		assert.Contains(t, here, test)
	}
}

func TestThePatternOfATestIsForItAlone(t *testing.T) {
	assert.Equal(t, "^TestA$|^TestB$/^c$", patternOf([]string{"TestA", "TestB/c", "TestA/d"}))
}
