package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func TestEveryCaseHasAnswersToEachOfItsSteps(t *testing.T) {
	cases, err := Cases()
	require.NoError(t, err)
	count := map[string]int{}
	for _, c := range cases {
		count[c.Topic]++
		answers, err := answersOf(c.Topic)
		require.NoError(t, err)
		require.Contains(t, answers, c.Name, c.Topic)
		require.NotEmpty(t, c.steps, c.ID())
		for _, s := range c.steps {
			require.Contains(t, answers[c.Name], "> "+s.line+"\n", c.ID())
		}
	}
	assert.Greater(t, len(cases), 300)
	for topic, n := range count {
		answers, err := answersOf(topic)
		require.NoError(t, err)
		assert.Len(t, answers, n, "%s: answers of no case", topic)
	}
}

func TestAnswersAreOfTopics(t *testing.T) {
	files, err := filepath.Glob("testdata/*.answers")
	require.NoError(t, err)
	for _, f := range files {
		_, err := os.Stat(strings.TrimSuffix(f, ".answers") + ".case")
		assert.NoError(t, err)
	}
}

func TestAScriptThatCannotBeReadIsAnError(t *testing.T) {
	for _, text := range []string{
		"GET /before/any/case", "=== a\nFETCH /x", "=== a\n  a body of nothing", "=== a\n=== a", "let x", "let x = 1\nlet x = 2",
		"=== a\nlet x = 1",
	} {
		_, err := parse("topic", text)
		assert.Error(t, err, text)
	}
	cases, err := parse("topic", "# comment\nlet x = y\nignore: a b\n\n=== one\nmessages\nonly: c\na = GET /x | raw | for 1 2\n  body\n\n=== two\nalone\n")
	require.NoError(t, err)
	require.Len(t, cases, 2)
	one, two := cases[0], cases[1]
	assert.Equal(t, rules{ignore: []string{"a", "b"}, only: []string{"c"}, messages: true}, one.rules)
	require.Len(t, one.steps, 1)
	assert.Equal(t, step{"a = GET /x | raw | for 1 2", "a", "GET", "/x", []string{"raw", "for 1 2"}, []string{"body"}}, one.steps[0])
	assert.True(t, one.steps[0].has("raw"))
	assert.Equal(t, []string{"1", "2"}, one.steps[0].after("for"))
	assert.Equal(t, rules{ignore: []string{"a", "b"}}, two.rules)
	assert.True(t, two.Alone)
}

func TestNamesStandForTexts(t *testing.T) {
	r := &run{namespace: "space", each: "one", script: Case{lets: map[string]string{"cm": "/x/$ns/cm"}}, answers: map[string]any{
		"a": map[string]any{"metadata": map[string]any{"uid": "U", "resourceVersion": "99"}, "list": []any{map[string]any{"n": int64(7)}}},
	}}
	for text, want := range map[string]string{
		"$cm/$each?q=$a.uid": "/x/space/cm/one?q=U", "$a.rv $a.rv+1 $a.rv-1": "99 100 98", "$a.list.0.n": "7",
		"$x3.$ns.io": "xxx.space.io", "{$patch: delete}": "{$patch: delete}",
	} {
		got, err := r.expand(text)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{"$b", "$a.none", "$a.list.3", "$a.uid+1"} {
		_, err := r.expand(text)
		assert.Error(t, err, text)
	}
}

// answered is the text of answers to one step each.
func answered(t *testing.T, script string, bodies ...string) string {
	t.Helper()
	cases, err := parse("topic", script)
	require.NoError(t, err)
	r := &run{script: cases[0], namespace: "case-00001"}
	for i, body := range bodies {
		e := entry{step: &cases[0].steps[i], code: 200}
		require.NoError(t, utiljson.Unmarshal([]byte(body), &e.body))
		r.entries = append(r.entries, e)
	}
	return r.transcript()
}

func TestWhatDiffersBetweenTwoRunsIsMasked(t *testing.T) {
	got := answered(t, "=== a\nGET /1\n  {t: 2001-02-03T04:05:06Z}\nGET /2",
		`{"metadata":{"name":"g-abcde","generateName":"g-","namespace":"case-00001","uid":"11111111-2222-3333-4444-555555555555","resourceVersion":"100",
		"creationTimestamp":"2026-01-01T00:00:00Z","managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z",
		"fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:k":{}}}}]},"at":"2001-02-03T04:05:06Z"}`,
		`{"metadata":{"resourceVersion":"99","continue":"abc"},"items":[{"metadata":{"resourceVersion":"9","name":"g-abcde"}}]}`)
	assert.Equal(t, `> GET /1
200
  metadata.creationTimestamp: "t"
  metadata.generateName: "g-"
  metadata.managedFields: ["m Update v1 {data{. k}}"]
  metadata.name: "g-<1>"
  metadata.namespace: "$ns"
  metadata.resourceVersion: "v2"
  metadata.uid: "u1"
  at: "2001-02-03T04:05:06Z"
> GET /2
200
  metadata.continue: "(a token)"
  metadata.resourceVersion: ">=v1"
  - {"metadata":{"name":"g-<1>","resourceVersion":"v1"}}
`, got)
}

func TestACaseSaysWhatIsCompared(t *testing.T) {
	object := `{"kind":"K","metadata":{"name":"a","uid":"x"},"spec":{"ports":[{"port":1,"nodePort":2}],"other":1}}`
	assert.Equal(t, "> GET /1\n200\n  kind: \"K\"\n  metadata.name: \"a\"\n  spec: {\"ports\":[{\"port\":1}]}\n",
		answered(t, "=== a\nonly: metadata.name spec.ports\nignore: spec.ports.nodePort\nGET /1", object))
	assert.Equal(t, "> GET /1 | drop metadata spec\n200\n  kind: \"K\"\n", answered(t, "=== a\nGET /1 | drop metadata spec", object))
	assert.Equal(t, "> GET /1 | quiet\n200\n", answered(t, "=== a\nGET /1 | quiet", object))
	failure := `{"kind":"Status","apiVersion":"v1","message":"m","details":{"causes":[{"field":"b","message":"c"},{"field":"a","message":"d"}]}}`
	assert.NotContains(t, answered(t, "=== a\nGET /1", failure), "message")
	assert.Contains(t, answered(t, "=== a\nGET /1 | messages", failure), `"causes":[{"field":"a","message":"d"},{"field":"b","message":"c"}]`)
}
