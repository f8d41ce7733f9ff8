"""A list of tasks in a JSON file."""
import json
import sys

FILE = "tasks.json"


def load(path=FILE):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def show(tasks):
    for number, task in enumerate(tasks, 1):
        print(f"{number}. {task['title']}")


def main(args):
    tasks = load()
    if args[:1] == ["list"]:
        show(tasks)
    else:
        print("usage: todo.py list")
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
