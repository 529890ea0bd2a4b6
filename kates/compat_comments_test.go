package kates_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// forEmissary are the names that stay for Emissary's code alone, by the folder of their package.
// New code has a better way: in this library, or in the libraries of Kubernetes.
var forEmissary = map[string][]string{
	".": {
		"APIResource", "Accumulator.FilteredUpdate", "ApplyPatchType", "Client.MaxAccumulatorInterval",
		"ClusterRole", "ClusterRoleBinding", "ConfigMap", "Container", "ConvertObject",
		"CoreConditionTrue", "CreateOptions", "DeleteOptions", "Deployment", "EndpointAddress",
		"EndpointPort", "EndpointSubset", "Endpoints", "EnvVar", "Event", "GetOptions", "Int",
		"IntOrString", "LabelSelector", "LabelSet", "ListOptions", "LocalObjectReference",
		"MergeUpdate", "MustParseQuantity", "Namespace", "NamespaceAll", "NamespaceNone",
		"NewClientFactory", "NewObject", "Node", "NodeUnreachablePodReason", "ObjectMeta",
		"ObjectReference", "ParseSelector", "PatchOptions", "PersistentVolumeClaim",
		"PersistentVolumeClaimVolumeSource", "Pod", "PodCondition", "PodFailed", "PodLogOptions",
		"PodReady", "PodSpec", "PodSucceeded", "PodTemplateSpec", "Protocol", "ProtocolSCTP",
		"ProtocolTCP", "ProtocolUDP", "Quantity", "ReplicaSet", "ResourceCPU", "ResourceList",
		"ResourceMemory", "ResourceRequirements", "Role", "RoleBinding", "Secret",
		"SecretTypeServiceAccountToken", "SecretTypeTLS", "SecurityContext", "Selector", "Service",
		"ServiceAccount", "ServicePort", "ServiceSpec", "ServiceTypeClusterIP",
		"ServiceTypeLoadBalancer", "SetOwnerReferences", "StatefulSet", "Time", "Toleration",
		"TolerationOpEqual", "TolerationOpExists", "TolerationOperator", "TypeMeta", "UpdateOptions",
		"VersionInfo", "Volume", "VolumeMount", "VolumeSource",
	},
	"configflags": {"ConfigFlags", "NewConfigFlags", "NewRESTMapper"},
	"metrics":     {"ContainerMetrics", "NodeMetrics", "PodMetrics"},
	"validate":    {"ConditionTrue", "CustomResourceDefinition", "Established", "NamesAccepted"},
}

func TestANameForEmissarysCodeAloneSaysWhatNewCodeUses(t *testing.T) {
	names := map[string]map[string]declared{}
	for folder := range forEmissary {
		names[folder] = declaredIn(t, folder)
	}
	for folder, alone := range forEmissary {
		for name, d := range names[folder] {
			assert.Equal(t, slices.Contains(alone, name), d.comment != "",
				"%s: is %s for Emissary's code alone? The list and the comment differ", folder, name)
		}
		for _, name := range alone {
			_, there := known[name]
			assert.True(t, there || slices.Contains(elsewhere[folder], name), "Emissary's kates has no %s", name)
			d, better := names[folder][name], false
			for _, link := range linksOf(d.comment) {
				imported, _, _ := strings.Cut(link, ".")
				_, here := names[folder][link]
				_, ofRoot := names["."][strings.TrimPrefix(link, "kates.")]
				assert.True(t, here || ofRoot && imported == "kates" || d.used[link],
					"%s: the comment of %s names %s, which does not exist", folder, name, link)
				better = better || !slices.Contains(alone, link)
			}
			assert.True(t, better, "%s: the comment of %s does not name what new code uses", folder, name)
		}
	}
}

func TestThePackageDocumentationIsForNewCode(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	require.NoError(t, err)
	names, links := declaredIn(t, "."), linksOf(file.Doc.Text())
	require.NotEmpty(t, links)
	for _, link := range links {
		d, exists := names[link]
		assert.True(t, exists, "there is no %s", link)
		assert.Empty(t, d.comment, link)
	}
}

// declared is an exported name of a package.
type declared struct {
	comment string // that says it is for Emissary's code, of the name or of its block; "" for none
	// used are the names of imported packages in its file, such as corev1.Pod: since the file
	// compiles, they exist.
	used map[string]bool
}

func isForEmissary(c *ast.CommentGroup) bool {
	return strings.HasPrefix(c.Text(), "For Emissary's code: ")
}

var linkForm = regexp.MustCompile(`\B\[([A-Za-z]\w*(?:\.\w+)*)\]`)

// linksOf returns the names that are in brackets in a comment.
func linksOf(comment string) (links []string) {
	for _, match := range linkForm.FindAllStringSubmatch(comment, -1) {
		links = append(links, match[1])
	}
	return links
}

// declaredIn returns the exported names of the package in a folder: what it declares, and the methods
// of its types. A comment for Emissary's code that belongs to none of them fails the test.
func declaredIn(t *testing.T, folder string) map[string]declared {
	names := map[string]declared{}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		used, of := usedOf(file), map[*ast.CommentGroup]bool{}
		add := func(name string, comments ...*ast.CommentGroup) {
			if !ast.IsExported(name[strings.LastIndex(name, ".")+1:]) {
				return
			}
			d := declared{used: used}
			for _, c := range comments {
				if isForEmissary(c) {
					d.comment, of[c] = c.Text(), true
				}
			}
			names[name] = d
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				add(receiverOf(d)+d.Name.Name, d.Doc)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						add(s.Name.Name, d.Doc, s.Doc)
					case *ast.ValueSpec:
						for _, name := range s.Names {
							add(name.Name, d.Doc, s.Doc)
						}
					}
				}
			}
		}
		for _, c := range file.Comments {
			assert.True(t, of[c] || !isForEmissary(c), "%s: this comment is of no exported name: %s", path, c.Text())
		}
	}
	return names
}

// receiverOf returns the type of a method with a dot, and nothing for a function.
func receiverOf(f *ast.FuncDecl) (of string) {
	if f.Recv == nil {
		return ""
	}
	ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
		if ident, ok := n.(*ast.Ident); ok && of == "" {
			of = ident.Name + "."
		}
		return of == ""
	})
	return of
}

// usedOf returns the names of imported packages that a file uses.
func usedOf(file *ast.File) map[string]bool {
	imported, used := map[string]bool{}, map[string]bool{}
	for _, i := range file.Imports {
		if i.Name != nil {
			imported[i.Name.Name] = true
			continue
		}
		path := strings.Trim(i.Path.Value, `"`)
		imported[path[strings.LastIndex(path, "/")+1:]] = true
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if of, ok := s.X.(*ast.Ident); ok && imported[of.Name] {
				used[of.Name+"."+s.Sel.Name] = true
			}
		}
		return true
	})
	return used
}
