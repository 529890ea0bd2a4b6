package readme

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const root = "../../.."

func TestEveryGoBlockOfTheDocumentsCompiles(t *testing.T) {
	var documents []Document
	for name, programs := range map[string]int{"README.md": 3, "docs/guide.md": 9, "docs/topics.md": 6, "docs/testing.md": 1} {
		document := filepath.Join(root, name)
		content, err := os.ReadFile(document)
		require.NoError(t, err)
		blocks, err := Blocks(string(content))
		require.NoError(t, err, name)
		require.GreaterOrEqual(t, len(blocks), programs, name)
		documents = append(documents, Document{document, blocks})
	}
	require.NoError(t, Compile(t.Context(), root, documents...))
}

// link matches the target of a link to a file of this repository.
var link = regexp.MustCompile(`\]\(([\w./-]+)(#[^)]*)?\)`)

func TestEveryLinkOfTheDocumentsLeadsSomewhere(t *testing.T) {
	documents, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	documents = append(documents, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"))
	found := 0
	for _, document := range documents {
		content, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, match := range link.FindAllStringSubmatch(string(content), -1) {
			found++
			_, err := os.Stat(filepath.Join(filepath.Dir(document), match[1]))
			require.NoError(t, err, document)
		}
	}
	require.Greater(t, found, 10)
}

var (
	namedTest = regexp.MustCompile("`(Test[A-Z]\\w*)(?:/(\\w+))?`")
	testFunc  = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	row       = regexp.MustCompile(`(?m)^\| ([A-Z]\d+) \|`)
)

// TestEveryTestThatADocumentNamesExists, and a scenario of a suite, too.
func TestEveryTestThatADocumentNamesExists(t *testing.T) {
	exists, code := map[string]bool{}, strings.Builder{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir // caches
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		content, err := os.ReadFile(path)
		for _, match := range testFunc.FindAllStringSubmatch(string(content), -1) {
			exists[match[1]] = true
		}
		if strings.Contains(path, "internal/test/suite/") {
			code.Write(content)
		}
		return err
	}))
	documents, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	found := 0
	for _, document := range documents {
		content, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, match := range namedTest.FindAllStringSubmatch(string(content), -1) {
			found++
			require.True(t, exists[match[1]], "%s: there is no %s", document, match[1])
			require.Contains(t, code.String(), match[2], document)
		}
	}
	require.Greater(t, found, 60)
}

// TestEachRowForReadersHasItsRowOfTests: a document has tables for readers, and one of tests.
func TestEachRowForReadersHasItsRowOfTests(t *testing.T) {
	for _, name := range []string{"failures.md", "versions.md"} {
		content, err := os.ReadFile(filepath.Join(root, "docs", name))
		require.NoError(t, err)
		forReaders, tests, _ := strings.Cut(string(content), "\n## Tests\n")
		require.NotEmpty(t, row.FindAllString(forReaders, -1), name)
		require.ElementsMatch(t, row.FindAllString(forReaders, -1), row.FindAllString(tests, -1), name)
		for line := range strings.Lines(tests) {
			require.True(t, !row.MatchString(line) || namedTest.MatchString(line), "%s: no test in %s", name, line)
		}
	}
}

// markdown turns ticks into backticks, which Go's raw strings cannot hold.
func markdown(text string) string { return strings.ReplaceAll(text, "'''", "```") }

func TestBlocksAreFoundWithTheirLines(t *testing.T) {
	blocks, err := Blocks(markdown(`# Title

'''go
package a
'''

'''sh
echo no Go; '''go is inline here
'''

~~~ Go title=x
package b // '''
~~~

- a list

  '''go
  package c

    var x = 1
  '''

~~~~markdown
'''go
not code of this document
'''
~~~
~~~~

'''gotemplate
{{ . }}
'''
`))
	require.NoError(t, err)
	require.Len(t, blocks, 3)
	require.Equal(t, Block{Line: 4, Source: "package a\n"}, blocks[0])
	require.Equal(t, 12, blocks[1].Line)
	require.Equal(t, Block{Line: 18, Source: "package c\n\n  var x = 1\n"}, blocks[2])
}

func TestAFragmentIsAnErrorThatNamesItsLine(t *testing.T) {
	_, err := Blocks(markdown("text\n\n'''go\nx := 1\n'''\n\n'''go\n\n'''\n"))
	require.ErrorContains(t, err, "line 3: a Go block must be a whole file")
	require.ErrorContains(t, err, "line 7: a Go block must be a whole file")
}

func TestAnOpenFenceIsAnErrorThatNamesItsLine(t *testing.T) {
	_, err := Blocks(markdown("text\n'''go\npackage a\n''\n"))
	require.ErrorContains(t, err, "line 2: the fence is not closed")
}

// compile compiles the blocks of a document beside the module.
func compile(t *testing.T, text string) error {
	t.Helper()
	blocks, err := Blocks(markdown(text))
	require.NoError(t, err)
	return Compile(t.Context(), root, Document{filepath.Join(t.TempDir(), "DOCUMENT.md"), blocks})
}

func TestProgramsAndPackagesCompile(t *testing.T) {
	require.NoError(t, compile(t, `
'''go
package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	_ "github.com/kates-go/kates/coherence"
)

func main() { panic("never executed: " + metav1.NamespaceAll) }
'''

'''go
package library

func F() {}
'''
`))
	require.NoError(t, compile(t, "'''go\npackage main\n\nfunc main() {}\n'''\n"), "one program alone")
	require.NoError(t, compile(t, "no code at all\n"))
}

func TestWhatDoesNotCompileIsAnErrorAtTheDocumentsLine(t *testing.T) {
	err := compile(t, "one\ntwo\n\n'''go\npackage main\n\nfunc main() { undefinedName() }\n'''\n")
	require.ErrorContains(t, err, "DOCUMENT.md:7")
	require.ErrorContains(t, err, "undefinedName")
}

func TestWhatVetFindsIsAnErrorAtTheDocumentsLine(t *testing.T) {
	err := compile(t, "'''go\npackage main\n\nimport \"fmt\"\n\nfunc main() { fmt.Printf(\"%d\", \"text\") }\n'''\n")
	require.ErrorContains(t, err, "DOCUMENT.md:6")
	require.ErrorContains(t, err, "Printf")
}

func TestAnUnknownImportIsAnError(t *testing.T) {
	err := compile(t, "'''go\npackage main\n\nimport _ \"example.com/not/required\"\n\nfunc main() {}\n'''\n")
	require.ErrorContains(t, err, "example.com/not/required")
}

func TestAnInternalImportIsAnError(t *testing.T) {
	err := compile(t, "'''go\npackage main\n\nimport _ \"github.com/kates-go/kates/internal/test/readme\"\n\nfunc main() {}\n'''\n")
	require.ErrorContains(t, err, "use of internal package")
}
