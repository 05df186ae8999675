"""Writes scene.pov: SIZE bodies, some of glass."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])

with open("scene.pov", "w") as file:
    file.write("#version 3.7;\nglobal_settings { assumed_gamma 1.0 }\ncamera { location <0, 8, -30> look_at 0 }\nlight_source { <20, 40, -30> rgb 1 }\nplane { y, -8 pigment { checker rgb 1 rgb 0.2 } }\n")
    for at in range(size):
        place = tuple(draw.randrange(-1200, 1200) / 100 for _ in range(3))
        look = "pigment { rgbf <%.2f, %.2f, %.2f, 0.8> } interior { ior 1.4 }" if at % 5 == 0 else "pigment { rgb <%.2f, %.2f, %.2f> } normal { bumps 0.4 } finish { reflection 0.2 }"
        file.write("sphere { <%.2f, %.2f, %.2f>, %.2f " % (*place, draw.randrange(20, 150) / 100) + look % tuple(draw.random() for _ in range(3)) + " }\n")
