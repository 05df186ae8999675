// Operators new and delete of several forms.
#include <map>
#include <memory>
#include <string>
#include <vector>

struct alignas(64) Line {
    char bytes[64];
};

int main() {
    std::map<std::string, std::vector<int>> words;
    for (int i = 0; i < 20000; i++)
        words["a rather long word, number " + std::to_string(i % 500)].push_back(i);
    std::vector<std::unique_ptr<Line>> lines;
    for (int i = 0; i < 1000; i++)
        lines.push_back(std::make_unique<Line>());
    int *array = new int[words.size()];
    delete[] array;
    return words.size() == 500 ? 0 : 1;
}
