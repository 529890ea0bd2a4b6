package mutants

const (
	statusRules = "internal/conditions/status.go"
	ofEachKind  = "TestTheStatusOfEachKindIsThatOfItsRuleTypedAndUntyped"
)

// statuses are mistakes about how far an object is.
var statuses = []mutant{
	{
		name: "a status about another generation counts", says: "If its status is about another generation, it is InProgress", file: statusRules, caught: ofEachKind,
		old: `if s.ObservedGeneration != 0 && s.Generation != 0 &&`, new: `if s.ObservedGeneration < 0 &&`,
	},
	{
		name: "a condition about an older generation counts", says: "A condition about an older generation is InProgress", file: statusRules, caught: ofEachKind,
		old: `a.about < generation`, new: `a.about < 0`,
	},
	{
		name: "a partition is not respected", says: "with the partition of a StatefulSet", file: "internal/conditions/workloads.go", caught: ofEachKind,
		old: `case updated < want-partition:`, new: `case updated < want:`,
	},
	{
		name: "what its finalizers hold is not being deleted", says: "An object with a deletionTimestamp is Terminating", file: statusRules, caught: ofEachKind,
		old: `	case deleted: // whatever else it says`, new: `	case deleted && s.Generation == 0:`,
	},
	{
		name: "fields of wrong types read as absent", says: "What cannot be read is [PhaseUnknown]", file: statusRules, caught: ofEachKind,
		old: `c.phase(s); *c.wrong != "" {`, new: `c.phase(s); *c.wrong == "?" {`,
	},
}
