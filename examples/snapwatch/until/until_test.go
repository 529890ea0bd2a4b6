package until_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kates-go/kates/examples/snapwatch/until"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	b, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	require.NoError(t, u.UnmarshalJSON(b))
	return u
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: prod, generation: 3}
spec: {replicas: 2}
status:
  observedGeneration: 3
  replicas: 2
  conditions:
  - {type: Available, status: "False", reason: TooFew, message: 1 of 2 pods}
  - {type: Progressing, status: "True"}
`

const secret = `
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: prod}
data: {password: aHVudGVyMg==}
`

// why returns why an object does not satisfy a condition; "" if it does.
func why(t *testing.T, condition, text string) string {
	t.Helper()
	c, err := until.Parse(condition)
	require.NoError(t, err)
	kind := until.Kind{Name: "deployments.apps"}
	kind.Objects = append(kind.Objects, object(t, text))
	unmet := c.Unmet([]until.Kind{kind})
	if len(unmet) == 0 {
		return ""
	}
	require.Len(t, unmet, 1)
	return unmet[0].What + ": " + unmet[0].Why
}

func TestConditionsAreThoseOfKubectlWait(t *testing.T) {
	const web = "deployment.apps/web in prod: "
	for condition, wanted := range map[string]string{
		"condition=Progressing":                                               "",
		"condition=progressing=true":                                          "",
		"condition=Available=False":                                           "",
		"condition=Available":                                                 web + "Available=False (TooFew): 1 of 2 pods",
		"condition=Ready":                                                     web + "it has no condition Ready",
		"jsonpath={.status.replicas}=2":                                       "",
		"jsonpath='{.status.replicas}'=2":                                     "?",
		"jsonpath=.status.replicas=2":                                         "",
		"jsonpath=status.replicas='2'":                                        "",
		"jsonpath={.status.replicas}":                                         "",
		"jsonpath={.status.replicas}=3":                                       web + "{.status.replicas}=2",
		"jsonpath={.status.readyReplicas}":                                    web + "{.status.readyReplicas} is not there",
		"jsonpath={.status.conditions[*].type}=Ready":                         web + "{.status.conditions[*].type} has several values: a path to one is needed",
		`jsonpath={.status.conditions[?(@.type=="Progressing")].status}=True`: "",
		"create": "",
		"delete": web + "it exists, and nobody has asked to delete it",
	} {
		if wanted == "?" { // the quotes are the shell's: with them it is no path
			_, err := until.Parse(condition)
			assert.Error(t, err, condition)
			continue
		}
		assert.Equal(t, wanted, why(t, condition, deployment), condition)
	}
}

func TestAConditionAboutAnOlderGenerationDoesNotCount(t *testing.T) {
	older := object(t, deployment)
	older.SetGeneration(4)
	c, err := until.Parse("condition=Progressing")
	require.NoError(t, err)
	unmet := c.Unmet([]until.Kind{{Name: "d", Objects: []*unstructured.Unstructured{older}}})
	require.Len(t, unmet, 1)
	assert.Equal(t, "Progressing=True is about generation 3, and the object is at 4", unmet[0].Why)
}

func TestCurrentIsWhatTheObjectSaysOfItself(t *testing.T) {
	assert.Contains(t, why(t, "current", deployment), "InProgress: ")
	assert.Empty(t, why(t, "current", secret))
}

func TestNoValueOfASecretIsInAMessage(t *testing.T) {
	got := why(t, "jsonpath={.data.password}=x", secret)
	assert.Equal(t, "secret/key in prod: {.data.password} has another value", got)
}

func TestEveryKindHasToSatisfyTheCondition(t *testing.T) {
	web := object(t, deployment)
	kinds := []until.Kind{
		{Name: "deployments.apps", Objects: []*unstructured.Unstructured{web}},
		{Name: "services"},
		{Name: "secrets", Unknown: "forbidden: no rights"},
		{Name: "hosts.example.com", Unknown: "missing: no such kind", Missing: true},
		{Name: "pods", Wanted: []string{"a"}},
	}
	for condition, wanted := range map[string][]until.Unmet{
		"condition=Progressing": {
			{What: "services", Why: "there are no objects"},
			{What: "secrets", Why: "forbidden: no rights"},
			{What: "hosts.example.com", Why: "missing: no such kind"},
			{What: "pods/a", Why: "there is no such object"},
		},
		"create": {
			{What: "services", Why: "there are no objects"},
			{What: "secrets", Why: "forbidden: no rights"},
			{What: "hosts.example.com", Why: "missing: no such kind"},
			{What: "pods/a", Why: "there is no such object"},
		},
		// What may not be read may be there.
		"delete": {
			{What: "deployment.apps/web in prod", Why: "it exists, and nobody has asked to delete it"},
			{What: "secrets", Why: "forbidden: no rights"},
		},
	} {
		c, err := until.Parse(condition)
		require.NoError(t, err)
		assert.Equal(t, wanted, c.Unmet(kinds), condition)
	}
}

func TestAnObjectThatIsBeingDeletedSaysWhatItWaitsFor(t *testing.T) {
	text := `{apiVersion: v1, kind: Pod, metadata: {name: a, deletionTimestamp: "2026-07-01T12:00:00Z", finalizers: [x/y]}}`
	assert.Equal(t, "pod/a: it is being deleted: finalizers x/y", why(t, "delete", text))
}

func TestWhatIsNoConditionIsAnErrorThatNamesTheForms(t *testing.T) {
	for _, text := range []string{"", "Available", "condition", "condition=", "condition==x", "create=x",
		"jsonpath", "jsonpath=", "jsonpath={.a", "jsonpath={.a}x", "jsonpath={.a}=", "jsonpath={.a[}=x"} {
		_, err := until.Parse(text)
		require.Error(t, err, text)
		assert.Contains(t, err.Error(), "--for="+text, text)
	}
}
